"""Notices when a peer is asked within a transaction: a connection, and perhaps locks, would wait for that peer."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import pytest
from asyncpg.transaction import Transaction

from services.common import channel


@dataclass
class _Scope:
    """A transaction of this task, or of the one that began it."""

    is_open: bool = True


_scopes: ContextVar[tuple[_Scope, ...]] = ContextVar("scopes", default=())


class RpcGuard:
    """`asked`: the methods that were called within a transaction."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[str] = []
        self._scopes: dict[int, _Scope] = {}
        self._watch_transactions(monkeypatch)
        self._watch_calls(monkeypatch)

    def _watch_transactions(self, monkeypatch: pytest.MonkeyPatch) -> None:
        start = Transaction.start

        async def started(transaction: Transaction) -> None:
            await start(transaction)
            scope = self._scopes[id(transaction)] = _Scope()
            _scopes.set((*(one for one in _scopes.get() if one.is_open), scope))

        monkeypatch.setattr(Transaction, "start", started)
        # Both the public methods and the end of `async with` come here.
        for name in ("_Transaction__commit", "_Transaction__rollback"):
            monkeypatch.setattr(Transaction, name, self._ended(getattr(Transaction, name)))

    def _ended(self, end: Any) -> Any:
        async def ended(transaction: Transaction) -> None:
            try:
                await end(transaction)
            finally:
                self._scopes.pop(id(transaction), _Scope()).is_open = False

        return ended

    def _watch_calls(self, monkeypatch: pytest.MonkeyPatch) -> None:
        call = channel._MultiCallable.__call__

        def called(rpc: Any, *args: Any, **options: Any) -> Any:
            if any(scope.is_open for scope in _scopes.get()):
                self.asked.append(rpc._name)
            return call(rpc, *args, **options)

        monkeypatch.setattr(channel._MultiCallable, "__call__", called)
