"""The ports of the loop: Protocols over plain values. Adapters implement them (adapters/)."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol
from uuid import UUID

from services.agent.core.facts import Settings, Usage
from services.agent.core.messages import Call, Message, Part, Return

# The model ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ToolInfo:
    """A tool as the loop sees it. `parameters` is the JSON Schema of its arguments."""

    id: UUID
    name: str
    tool_type: str
    description: str
    parameters: dict[str, Any]
    parallel: bool = False
    return_char_limit: int = 50_000
    # Whether its code is given the agent's state, and may change the blocks in it.
    takes_agent_state: bool = False


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One model call. `stream` asks for deltas; the answer is the same.

    forced: a tool must be called; `only`: this one. parallel: whether one reply may hold several calls.
    """

    settings: Settings
    prompt: str
    history: Sequence[Message]
    tools: Sequence[ToolInfo]
    agent_id: UUID
    step_id: UUID
    stream: bool
    forced: bool = False
    only: str | None = None
    parallel: bool = True
    # A text is wanted: the tools are shown, and none may be called.
    text_only: bool = False


@dataclass(frozen=True, slots=True)
class PartDelta:
    """More of part number `index` of the reply: text for content and reasoning; argument text for a call."""

    index: int
    kind: str
    text: str
    call_id: str = ""
    call_name: str = ""


@dataclass(frozen=True, slots=True)
class Reply:
    """The whole reply. Calls have no key yet. `outputs` and `trace` only where the request's options ask for them.

    handle: the model that answered, perhaps a fallback of the one asked. `tool_problems`: (name, why) of tools that it
    was not offered.
    """

    parts: tuple[Part, ...]
    usage: Usage
    finish: str
    outputs: Mapping[str, Any] | None = None
    trace: str | None = None
    handle: str = ""
    tool_problems: tuple[tuple[str, str], ...] = ()


class PeerLost(Exception):
    """The peer went away in the middle; the call may be made again."""


class Models(Protocol):
    """Chat models."""

    def generate(self, request: ModelRequest) -> AsyncGenerator[PartDelta | Reply]:
        """Deltas, then the reply. Raises PeerLost, or LociError when the call failed for good.

        Closing the iterator closes the provider's call.
        """
        ...

    async def count(self, request: ModelRequest) -> int | None:
        """Returns the input tokens of a request as its provider counts them; None where it does not count or answer."""
        ...

    async def window(self, handle: str) -> int:
        """Returns tokens of a model's window. Raises NotFound (MODEL_NOT_FOUND) for one that is not configured."""
        ...

    async def reasons(self, handle: str) -> bool:
        """Returns whether a model thinks by itself before it answers; False where nobody says."""
        ...


# Memory -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class BlockView:
    """A block as the prompt shows it."""

    id: UUID
    version: int
    label: str
    value: str
    limit: int
    description: str = ""
    read_only: bool = False


@dataclass(frozen=True, slots=True)
class FileView:
    """A file as the prompt shows it. `name`: with its folder's. `content`: the lines in view, empty unless open."""

    id: UUID
    name: str
    is_open: bool = False
    content: str = ""


@dataclass(frozen=True, slots=True)
class DirectoryView:
    """A folder as the prompt shows it: some of its `file_count` files."""

    name: str
    description: str = ""
    instructions: str = ""
    files: tuple[FileView, ...] = ()
    file_count: int = 0


@dataclass(frozen=True, slots=True)
class MemoryView:
    """An agent's memory as the prompt shows it. `files_version`: of the directories; None: as directories.py tells."""

    blocks: tuple[BlockView, ...] = ()
    passage_count: int = 0
    passage_tags: tuple[str, ...] = ()
    directories: tuple[DirectoryView, ...] = ()
    files_version: str | None = None


@dataclass(frozen=True, slots=True)
class CallSite:
    """The place of a tool call. `seen`: messages of the run that the model saw whole when it made the call.

    `deadline`: of the run, in seconds since the epoch. Run and step are None for calls that belong to no turn.
    """

    organization_id: UUID
    agent_id: UUID
    conversation_id: UUID
    run_id: UUID | None
    step_id: UUID | None
    settings: Settings
    seen: tuple[UUID, ...] = ()
    deadline: float | None = None


class Memory(Protocol):
    """The agent's memory."""

    async def view(self, agent_id: UUID, conversation_id: UUID) -> MemoryView:
        """Returns what the prompt shows in a conversation; the default one has the agent's id.

        Waits for a service that is being restarted; raises LociError after that.
        """
        ...

    async def apply(self, call: Call, site: CallSite, *, create_block: bool = False) -> Return:
        """Runs a memory tool exactly once under the call's key; `create_block`: makes a block that is not
        there.
        """
        ...

    async def fence(self) -> None:
        """Has it refuse what earlier owners of the current run ask for. Raises LociError."""
        ...

    async def recall(self, agent_id: UUID, query: str, most: int) -> tuple[str, ...]:
        """Returns the passages of the agent's archives that fit the query best. Raises LociError."""
        ...


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of a call. `is_cut`: the text is within the tool's limit already.

    edits: (label, value) of blocks that the tool changed in the state it was given, for the caller to apply. result:
    JSON text of what it returned, where that is known. settings: fingerprint of the sandbox's.
    """

    returned: Return
    edits: tuple[tuple[str, str], ...] = ()
    is_cut: bool = False
    result: str = ""
    settings: str = ""


class AgentStates(Protocol):
    """Agents as tools see them."""

    async def of(self, site: CallSite) -> str:
        """Returns JSON text, by the reference's names. Raises LociError."""
        ...


class Tools(Protocol):
    """The catalogue and the sandboxes."""

    async def describe(self, tool_ids: Sequence[UUID]) -> tuple[ToolInfo, ...]:
        """Returns the tools that exist, in order."""
        ...

    async def execute(self, tool: ToolInfo, call: Call, site: CallSite, *, agent_state: str = "") -> ToolResult:
        """Runs a tool in a sandbox at most once under the call's key. Waits for a runner that is restarted."""
        ...

    async def cancel(self, call_key: str) -> None:
        """Kills the execution of a call; one that comes later is not run."""
        ...

    async def fence(self) -> None:
        """Has them refuse what earlier owners of the current run ask for. Raises LociError."""
        ...


class Recall(Protocol):
    """Search over the agent's own messages."""

    async def search(self, call: Call, site: CallSite) -> Return:
        """Runs conversation_search."""
        ...
