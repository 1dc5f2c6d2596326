"""Counts the SQL statements and transactions that connections send: for benches and tests."""

import re
from typing import Any

_BEGIN = re.compile(r"\s*(?:BEGIN|START\s+TRANSACTION)\b", re.IGNORECASE)
# What begins in one message with its settings.
_MORE = re.compile(r"[^;]*;\s*\S")
_NESTED = re.compile(r"\s*(?:SAVEPOINT|RELEASE|ROLLBACK\s+TO)\b", re.IGNORECASE)
_END = re.compile(r"\s*(?:COMMIT|END|ROLLBACK)\b", re.IGNORECASE)


class StatementCounter:
    """The count of statements that the pools and engines opened with it have sent, together.

    statements: without BEGIN, COMMIT, ROLLBACK and savepoints. transactions: explicit blocks, and statements
    outside of one. texts: the statements' SQL in order, kept only with `keep_texts`. Counts lag by one turn
    of the event loop (`await asyncio.sleep(0)`).
    """

    def __init__(self, *, keep_texts: bool = False) -> None:
        self.statements = 0
        self.transactions = 0
        self.texts: list[str] = []
        self._keep_texts = keep_texts

    def reset(self) -> None:
        """Sets both counts to zero."""
        self.statements = self.transactions = 0
        self.texts.clear()

    def add(self, text: str, *, new_transaction: bool) -> None:
        """Counts one statement."""
        self.statements += 1
        self.transactions += new_transaction
        if self._keep_texts:
            self.texts.append(text)


class ConnectionCounter:
    """Knows whether one connection is within a transaction block."""

    def __init__(self, counter: StatementCounter) -> None:
        self._counter = counter
        self._in_block = False

    def sent(self, text: str) -> None:
        """Counts a statement that the connection has sent."""
        if _BEGIN.match(text):
            self._in_block = True
            self._counter.transactions += 1
            if _MORE.match(text):
                self._counter.add(text, new_transaction=False)
        elif _NESTED.match(text):
            pass
        elif _END.match(text):
            self._in_block = False
        else:
            self._counter.add(text, new_transaction=not self._in_block)


class CountingStatement:
    """An asyncpg prepared statement whose executions are counted."""

    def __init__(self, statement: Any, text: str, counted: ConnectionCounter) -> None:
        self._statement = statement
        self._text = text
        self._counted = counted

    def __getattr__(self, name: str) -> Any:
        if name in {"fetch", "fetchval", "fetchrow", "fetchmany", "executemany", "cursor"}:
            self._counted.sent(self._text)
        return getattr(self._statement, name)
