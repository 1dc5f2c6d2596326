"""The job that every step works on."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from cli.importing.encryption import Keyring
from cli.importing.message_source import MessageSource
from cli.importing.report import Report
from cli.importing.schema import Join
from cli.importing.source import Source
from cli.importing.target import Loci, describe
from services.common.errors import (
    AlreadyExists,
    FailedPrecondition,
    InvalidArgument,
    LociError,
    NotFound,
    PermissionDenied,
)

T = TypeVar("T")

# Requests under way at the same time.
_AT_ONCE = 8
# It is the row that is wrong, and not the service: the others may be well.
REFUSALS = (InvalidArgument, NotFound, AlreadyExists, FailedPrecondition, PermissionDenied)


@dataclass
class Import:
    """An import under way. tools: ids here by the old ones; tool_names, block_labels: by the old ids; agents: ids of
    those that are here."""

    source: Source
    loci: Loci
    keyring: Keyring
    report: Report
    dry_run: bool = False
    progress: Callable[[str], None] = lambda line: None
    tools: dict[str, str] = field(default_factory=dict)
    tool_names: dict[str, str] = field(default_factory=dict)
    block_labels: dict[str, str] = field(default_factory=dict)
    agents: set[str] = field(default_factory=set)

    @property
    def messages(self) -> MessageSource:
        """Returns the messages of the old server's database."""
        return MessageSource(self.source)

    async def create(self, table: str, rpc: Any, request: Any, *, id: str, name: str = "") -> Any:
        """Sends a request that creates something; returns the answer, or None after a refusal, which it reports."""
        if self.dry_run:
            self.report.take(table, id)
            return None
        try:
            answer = await self.loci.call(rpc, request)
        except REFUSALS as error:
            self.report.leave(table, id, describe(error), name)
            return None
        self.report.take(table, id)
        return answer

    async def links(self, join: Join, owner: str) -> list[str]:
        """Returns the others of an owner whose rows are here now, oldest first."""
        linked = await self.source.existing_ids(join.other[1], await self.source.linked_ids(join, owner))
        return [one for one in linked if self.report.is_here(join.other[1], one)]

    def take_links(self, join: Join, owner: str, others: Iterable[str]) -> None:
        """Records what an owner has got."""
        for other in others:
            self.report.take(join.name, f"{owner}/{other}")


async def run_concurrently(rows: AsyncIterator[T], work: Callable[[T], Awaitable[None]]) -> None:
    """Works on rows as they come, a few at a time. Raises the first LociError."""
    places = asyncio.Semaphore(_AT_ONCE)

    async def one(row: T) -> None:
        try:
            await work(row)
        finally:
            places.release()

    failure: LociError | None = None
    try:
        async with asyncio.TaskGroup() as tasks:
            async for row in rows:
                await places.acquire()
                tasks.create_task(one(row))
    except* LociError as failures:
        failure = _first(failures)
    if failure is not None:
        raise failure


def _first(failures: BaseExceptionGroup[LociError]) -> LociError:
    failure: BaseException = failures
    while isinstance(failure, BaseExceptionGroup):
        failure = failure.exceptions[0]
    assert isinstance(failure, LociError)
    return failure
