"""What the tool runner needs from outside: where tools run, and where things are kept."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol
from uuid import UUID

from services.common.paging import Page, PageOf
from services.tool_runner.job import Job, Result
from services.tool_runner.lists import ToolFilter
from services.tool_runner.model import Ending, Receipt, Tool

# A call: the tenant and the key that the caller minted.
CallId = tuple[UUID, str]


class Sandbox(Protocol):
    """A place where one call runs alone and from which nothing of it survives.

    Cancelling `run` kills the call; it is gone when CancelledError leaves.
    """

    name: str
    image: str  # "" where there is none

    async def run(self, job: Job) -> Result:
        """Run one call to its end; raises SandboxUnavailable only where the tool's code did not begin."""
        ...

    async def close(self) -> None:
        """Stop what is kept warm. Idempotent."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """What a receipt begins with."""

    tool_id: UUID
    tool_version: int
    agent_id: UUID | None
    arguments_hash: str
    owner_id: UUID
    limits: Mapping[str, Any]


class ToolStore(Protocol):
    """The catalogue. Every method takes the tenant first; servicers take it from the verified call context."""

    async def find(self, organization_id: UUID, tool_id: UUID) -> Tool | None:
        """By id."""
        ...

    async def named(self, organization_id: UUID, name: str) -> Tool | None:
        """By name."""
        ...

    async def batch(self, organization_id: UUID, ids: Sequence[UUID], names: Sequence[str]) -> list[Tool]:
        """Those that exist, each once, in no order."""
        ...

    async def insert(self, organization_id: UUID, user_id: UUID, tool: Tool) -> Tool:
        """Add it; the tool that already has the id is returned as it is. Raises AlreadyExists (TOOL_NAME_TAKEN)."""
        ...

    async def update(self, organization_id: UUID, user_id: UUID, tool: Tool) -> Tool | None:
        """Replace version `tool.version`; None where that is no longer the version. Raises AlreadyExists."""
        ...

    async def ensure(self, organization_id: UUID, user_id: UUID, tools: Sequence[Tool]) -> None:
        """Add the built-in tools that are missing, bring those that changed up to date."""
        ...

    async def delete(self, organization_id: UUID, tool_id: UUID) -> None:
        """Remove it; raises NotFound (TOOL_NOT_FOUND)."""
        ...


class Lists(Protocol):
    """Pages of the catalogue."""

    async def tools(self, organization_id: UUID, wanted: ToolFilter, page: Page) -> PageOf[Tool]:
        """One page; raises NotFound for a cursor that names no tool, Refused for a bad token."""
        ...

    async def close(self) -> None:
        """Close what it holds."""
        ...


class ReceiptStore(Protocol):
    """Receipts and the leases of their owners. What expects to own a receipt says so, and fails where it does not."""

    async def reserve(self, call: CallId, what: Reservation) -> bool:
        """Make the receipt, reserved; False where there is one."""
        ...

    async def read(self, call: CallId) -> Receipt | None:
        """The receipt, with whether its owner lives."""
        ...

    async def take_over(self, call: CallId, found: Receipt, owner_id: UUID) -> bool:
        """Reserve it again for another owner, if it is still as it was found."""
        ...

    async def start(self, call: CallId, owner_id: UUID, sandbox: str, image: str) -> bool:
        """Reserved to started; False where it is no longer this owner's."""
        ...

    async def release(self, call: CallId, owner_id: UUID) -> None:
        """Forget the call: nothing of it ran."""
        ...

    async def end(self, call: CallId, owner_id: UUID, ending: Ending) -> Receipt | None:
        """Write how it ended; None where it is no longer this owner's."""
        ...

    async def request_cancel(self, call: CallId) -> None:
        """Ask whoever runs it to kill it."""
        ...

    async def cancelled(self, calls: Collection[CallId]) -> list[CallId]:
        """Those of the calls that somebody asked to cancel."""
        ...

    async def purge(self, organization_id: UUID, agent_id: UUID) -> int:
        """Erase an agent's receipts; how many there were."""
        ...

    async def beat(self, owner_id: UUID) -> None:
        """Renew the owner's lease, or begin it."""
        ...

    async def retire(self, owner_id: UUID) -> None:
        """End the owner's lease, and remove leases long forgotten."""
        ...
