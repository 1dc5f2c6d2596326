"""The parts of an import until all are there: peers are asked meanwhile, and no transaction is to wait for them."""

from collections.abc import Awaitable, Callable, Sequence
from tempfile import SpooledTemporaryFile
from typing import Any, Protocol

import orjson

from services.agent.core.messages import Message
from services.agent.postgres.rows import message_to_row
from services.agent.resources.agents.model.settings import AgentSettings
from services.agent.resources.transfers.model import ImportedAgent, ImportedConversation, ImportedGroup, Log

# Bytes of messages that are kept in memory; more go to a file.
_IN_MEMORY = 8 << 20


class ImportRows(Protocol):
    """An open transaction."""

    async def agent(self, new: ImportedAgent, settings: AgentSettings, log: Log) -> None: ...

    async def conversation(self, new: ImportedConversation, labels: Sequence[str], log: Log) -> None: ...

    async def messages(self, log: Log, first_seq: int, rows: Sequence[dict[str, Any]]) -> None: ...

    async def head(self, log: Log) -> None: ...

    async def group(self, new: ImportedGroup) -> None: ...


class Spool:
    """`ports.ImportWriter`: what it is given is written by `replay`, in that order."""

    def __init__(self) -> None:
        self._writes: list[Callable[[ImportRows], Awaitable[None]]] = []
        self._file = SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115  closed by `close`

    def agent(self, new: ImportedAgent, settings: AgentSettings, log: Log) -> None:
        self._writes.append(lambda rows: rows.agent(new, settings, log))

    def conversation(self, new: ImportedConversation, labels: Sequence[str], log: Log) -> None:
        self._writes.append(lambda rows: rows.conversation(new, labels, log))

    def messages(self, log: Log, first_seq: int, messages: Sequence[Message]) -> None:
        encoded = orjson.dumps([message_to_row(message, place, 0) for place, message in enumerate(messages)])
        self._file.write(encoded)
        self._writes.append(lambda rows: rows.messages(log, first_seq, orjson.loads(self._file.read(len(encoded)))))

    def head(self, log: Log) -> None:
        self._writes.append(lambda rows: rows.head(log))

    def group(self, new: ImportedGroup) -> None:
        self._writes.append(lambda rows: rows.group(new))

    async def replay(self, rows: ImportRows) -> None:
        """Writes all of it. Once."""
        self._file.seek(0)
        for write in self._writes:
            await write(rows)

    def close(self) -> None:
        self._file.close()
