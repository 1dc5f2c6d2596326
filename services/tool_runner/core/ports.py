"""The ports of running tools: sandboxes, runners, packages and environments."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol
from uuid import UUID

from services.tool_runner.core.job import File, Job, Language, Layer, Limits, Mode, Output, Result
from services.tool_runner.core.model import Call, Tool


class Connection(Protocol):
    """A connection that tool code opened to the proxy in its sandbox, as a stream of bytes."""

    async def read(self) -> bytes:
        """Returns what came; b"" at its end."""
        ...

    async def write(self, data: bytes) -> None:
        """Gives it; waits while the tool does not read. Raises ConnectionError when it is gone."""
        ...

    async def end(self) -> None:
        """Ends the writing: the tool reads an end, and may go on writing. Raises ConnectionError when it is gone."""
        ...

    async def close(self) -> None:
        """Ends it. Idempotent."""
        ...


class Tunnel(Protocol):
    """The end of one call's connections: `egress.proxy` checks them, and speaks to the world for it."""

    # Text of certificates (PEM) that the tool is to trust beside the usual ones; "" where nothing is looked into.
    authority: str

    async def serve(self, connection: Connection) -> None:
        """Serves it to its end; whatever the other side does is not raised."""
        ...


@dataclass(frozen=True, slots=True)
class Ends:
    """The places to which output and connections of a running call go. No tunnel: nothing can be reached."""

    on_output: Callable[[Output], None] | None = None
    tunnel: Tunnel | None = None


NO_ENDS = Ends()


class Process(Protocol):
    """A program that runs in a sandbox, spoken to on its stdin and stdout; what it writes to stderr is kept apart."""

    async def read(self) -> bytes:
        """Returns what it wrote; b"" once it has ended."""
        ...

    async def write(self, data: bytes) -> None:
        """Writes to its stdin. Raises ConnectionError when it is gone."""
        ...

    @property
    def errors(self) -> str:
        """Returns what it wrote to stderr: the first 1,000 characters and the last 3,000."""
        ...

    async def close(self) -> None:
        """Kills it and its sandbox. Idempotent."""
        ...


class Sandbox(Protocol):
    """A place where one call runs alone and from which nothing of it survives.

    Cancelling `run` kills the call; it is gone when CancelledError leaves.
    """

    name: str
    image: str  # "" where there is none

    async def run(self, job: Job, ends: Ends = NO_ENDS) -> Result:
        """Runs one call to its end; raises SandboxUnavailable only where the tool's code did not begin."""
        ...

    async def open(self, job: Job, ends: Ends = NO_ENDS) -> Process:
        """Starts a job of mode PROCESS, which runs until it is closed or ends by itself; raises SandboxUnavailable."""
        ...

    async def end_session(self, session: str) -> None:
        """Lets go of the worker that a session holds, if any."""
        ...

    async def close(self) -> None:
        """Stops what is kept warm. Idempotent."""
        ...


@dataclass(frozen=True, slots=True)
class Place:
    """The sandbox or server that ran a call, for its receipt. `server`: who is waited for, where nothing runs here."""

    name: str
    image: str = ""
    server: str = ""


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
        """Returns the place where it would run; raises SandboxUnavailable. Nothing of the tool has begun."""
        ...

    async def run(self, work: Work, on_output: Callable[[Output], None]) -> Result:
        """Runs it to its end. Raises SandboxUnavailable only where it did not begin; cancelling ends it."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class CallEnvironment:
    """The tenant's settings for a call. `variables` are opened: secrets, which are masked in its output.

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
        """Returns what holds now, in one statement.

        Raises Unavailable, and FailedPrecondition (CREDENTIALS_UNREADABLE) where values were sealed with another key.
        """
        ...


class Sandboxes(Protocol):
    """The choice of the sandbox that serves; see `sandboxes.choose.SandboxChoice`."""

    async def get(self) -> Sandbox:
        """Returns the sandbox that serves now. Raises SandboxUnavailable."""
        ...

    def forget(self, sandbox: Sandbox) -> None:
        """Has the next `get` look again: this sandbox turned out to be unavailable."""
        ...

    async def close(self) -> None:
        """Closes the sandboxes in use."""
        ...


class Layers(Protocol):
    """Packages of tools and programs, installed once; see `layers.layers.Layers`."""

    async def of(self, requirements: tuple[str, ...], language: Language) -> Layer:
        """Returns the layer of checked requirements. Raises as `of_tool`."""
        ...

    async def of_tool(self, tool: Tool) -> Layer | None:
        """Returns what its requirements come to, made where it is not there yet; None for none.

        Raises FailedPrecondition (REQUIREMENTS_FAILED), and SandboxUnavailable where nothing can be made.
        """
        ...
