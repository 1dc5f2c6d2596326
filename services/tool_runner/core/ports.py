"""What the tool runner needs from outside: where tools run, and where things are kept."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol
from uuid import UUID

from services.common.paging import Page, PageOf
from services.tool_runner.core.job import File, Job, Limits, Mode, Output, Result
from services.tool_runner.core.model import Call, Ending, Receipt, Tool
from services.tool_runner.tools.model import ToolFilter

# A call: the tenant and the key that the caller minted.
CallId = tuple[UUID, str]


class Connection(Protocol):
    """A connection that tool code opened to the proxy in its sandbox, as a stream of bytes."""

    async def read(self) -> bytes:
        """What came; b"" at its end."""
        ...

    async def write(self, data: bytes) -> None:
        """Give it; waits while the tool does not read. Raises ConnectionError when it is gone."""
        ...

    async def close(self) -> None:
        """End it. Idempotent."""
        ...


class Tunnel(Protocol):
    """Where the connections of one call end: `egress.proxy` judges them, and speaks to the world for it."""

    # Text of certificates (PEM) that the tool is to trust beside the usual ones; "" where nothing is looked into.
    authority: str

    async def serve(self, connection: Connection) -> None:
        """Serve it to its end; whatever the other side does is not raised."""
        ...


@dataclass(frozen=True, slots=True)
class Ends:
    """Where what comes out of a call while it runs goes. No tunnel: nothing can be reached."""

    on_output: Callable[[Output], None] | None = None
    tunnel: Tunnel | None = None


NO_ENDS = Ends()


class Process(Protocol):
    """A program that runs in a sandbox, spoken to on its stdin and stdout; what it writes to stderr is kept apart."""

    async def read(self) -> bytes:
        """What it wrote; b"" once it has ended."""
        ...

    async def write(self, data: bytes) -> None:
        """To its stdin. Raises ConnectionError when it is gone."""
        ...

    @property
    def errors(self) -> str:
        """The last 4,000 characters it wrote to stderr."""
        ...

    async def close(self) -> None:
        """Kill it and its sandbox. Idempotent."""
        ...


class Sandbox(Protocol):
    """A place where one call runs alone and from which nothing of it survives.

    Cancelling `run` kills the call; it is gone when CancelledError leaves.
    """

    name: str
    image: str  # "" where there is none

    async def run(self, job: Job, ends: Ends = NO_ENDS) -> Result:
        """Run one call to its end; raises SandboxUnavailable only where the tool's code did not begin."""
        ...

    async def open(self, job: Job, ends: Ends = NO_ENDS) -> Process:
        """Start a job of mode PROCESS, which runs until it is closed or ends by itself; raises SandboxUnavailable."""
        ...

    async def end_session(self, session: str) -> None:
        """Let go of the worker that a session holds, if any."""
        ...

    async def close(self) -> None:
        """Stop what is kept warm. Idempotent."""
        ...


@dataclass(frozen=True, slots=True)
class Place:
    """What ran a call, for its receipt."""

    name: str
    image: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """One call, checked and ready. `arguments` fit the tool's schema; `environment` is merged, secrets are in it."""

    organization_id: UUID
    tool: Tool
    call: Call
    arguments: Mapping[str, Any]
    environment: Mapping[str, str] = field(repr=False)
    limits: Limits
    inputs: tuple[File, ...] = ()
    mode: Mode = Mode.CALL  # SCRIPT: the tool's source is a program


class Runner(Protocol):
    """Runs calls of some types of tools: in a sandbox, at an MCP server, or itself (built-in ones)."""

    async def place(self, tool: Tool) -> Place:
        """Where it would run; raises SandboxUnavailable. Nothing of the tool has begun."""
        ...

    async def run(self, work: Work, on_output: Callable[[Output], None]) -> Result:
        """Run it to its end. Raises SandboxUnavailable only where it did not begin; cancelling ends it."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class CallEnvironment:
    """What the tenant's settings give to a call. `variables` are opened: secrets, to be masked in what is told of it.

    Requirements, of every call of the tenant beside the tool's own: JSON arrays as `Tool` has them, "" for none.
    `fingerprint`: of the sandbox settings that hold, the variables apart; 64 hexadecimal digits.
    """

    variables: Mapping[str, str] = field(default_factory=dict, repr=False)
    pip_requirements: str = ""
    npm_requirements: str = ""
    fingerprint: str = ""


class Environments(Protocol):
    """The variables of calls: of sandbox settings, tool, agent, in that order; later ones win."""

    async def of_call(self, organization_id: UUID, tool_id: UUID, agent_id: UUID | None) -> CallEnvironment:
        """What holds now, in one statement.

        Raises Unavailable, and FailedPrecondition (CREDENTIALS_UNREADABLE) where values were sealed with another key.
        """
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
    tool_name: str = ""
    run_id: UUID | None = None
    step_id: UUID | None = None
    settings: str = ""  # CallEnvironment.fingerprint


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

    async def count(self, organization_id: UUID, wanted: ToolFilter) -> int:
        """How many the filter lets through."""
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
        """Reserve it again for another owner, if it is still as it was found. What it printed before is gone."""
        ...

    async def start(self, call: CallId, owner_id: UUID, sandbox: str, image: str) -> bool:
        """Reserved to started; False where it is no longer this owner's."""
        ...

    async def release(self, call: CallId, owner_id: UUID) -> None:
        """Forget the call: nothing of it ran."""
        ...

    async def end(self, call: CallId, owner_id: UUID, ending: Ending) -> Receipt | None:
        """Write how it ended, with the files it made; None where it is no longer this owner's."""
        ...

    async def request_cancel(self, call: CallId) -> None:
        """Ask whoever runs it to kill it."""
        ...

    async def cancelled(self, calls: Collection[CallId]) -> list[CallId]:
        """Those of the calls that somebody asked to cancel."""
        ...

    async def purge(self, organization_id: UUID, agent_id: UUID) -> int:
        """Erase an agent's receipts, and the files and output of its calls; how many receipts there were."""
        ...

    async def beat(self, owner_id: UUID) -> None:
        """Renew the owner's lease, or begin it."""
        ...

    async def retire(self, owner_id: UUID) -> None:
        """End the owner's lease, and remove leases long forgotten."""
        ...
