"""The job that every step works on."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from cli.importing.encryption import Keyring
from cli.importing.report import Report
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
    """An import under way.

    tools: ids here by the old ones, tool_names: by the old ones. agents: ids of those that are here. lost: old ids of
    what is not taken, so that nothing refers to it.
    """

    source: Source
    loci: Loci
    keyring: Keyring
    report: Report
    dry_run: bool = False
    progress: Callable[[str], None] = lambda line: None
    tools: dict[str, str] = field(default_factory=dict)
    tool_names: dict[str, str] = field(default_factory=dict)
    agents: set[str] = field(default_factory=set)
    lost: set[str] = field(default_factory=set)

    async def create(self, entity: str, rpc: Any, request: Any, *, id: str, name: str = "") -> Any:
        """Sends a request that creates something; returns the answer, or None after a refusal, which it reports."""
        if self.dry_run:
            self.report.count_taken(entity)
            return None
        try:
            made = await self.loci.call(rpc, request)
        except REFUSALS as error:
            self.skip(entity, describe(error), id=id, name=name)
            return None
        self.report.count_taken(entity)
        return made

    def skip(self, entity: str, reason: str, *, id: str, name: str = "") -> None:
        """Records a row that is not taken."""
        self.report.skip(entity, reason, id=id, name=name)
        self.lost.add(id)

    async def imported_ids(self, table: str, ids: Sequence[str]) -> list[str]:
        """Returns those of the old ids whose rows are here now, oldest first."""
        return [one for one in await self.source.existing_ids(table, ids) if one not in self.lost]


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
