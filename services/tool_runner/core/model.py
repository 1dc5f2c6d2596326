"""The tool runner's plain values. Nothing here knows SQL or protobuf."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum, StrEnum
from typing import Any
from uuid import UUID

JsonObject = dict[str, Any]


class ToolType(StrEnum):
    """The kind of a tool, which says who runs it; the values are those of the reference API."""

    CUSTOM = "custom"
    LETTA_CORE = "letta_core"
    LETTA_MEMORY_CORE = "letta_memory_core"
    LETTA_MULTI_AGENT_CORE = "letta_multi_agent_core"
    LETTA_SLEEPTIME_CORE = "letta_sleeptime_core"
    LETTA_VOICE_SLEEPTIME_CORE = "letta_voice_sleeptime_core"
    LETTA_BUILTIN = "letta_builtin"
    LETTA_FILES_CORE = "letta_files_core"
    EXTERNAL_MCP = "external_mcp"
    EXTERNAL_LANGCHAIN = "external_langchain"
    EXTERNAL_COMPOSIO = "external_composio"


# By the names of ToolSettings; the schemas and `description` are None where they are to be derived.
ToolChanges = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSettings:
    """Settings of a tool. JSON is kept as the text it came in, byte for byte; "" where there is none.

    `source_type` is "json" for Python of which a client did not say what it is, as in the reference.
    """

    source_type: str = "json"
    source_code: str = ""
    description: str = ""
    tags: tuple[str, ...] = ()
    return_char_limit: int = 50_000
    default_requires_approval: bool | None = None
    enable_parallel_execution: bool = False
    idempotent: bool = False
    project_id: str | None = None
    json_schema: str = ""
    args_json_schema: str = ""
    pip_requirements: str = ""
    npm_requirements: str = ""
    network: str = ""
    metadata: str = "{}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool(ToolSettings):
    """A tool of one tenant."""

    id: UUID
    name: str
    tool_type: ToolType
    takes_agent_state: bool = False
    mcp_server_id: UUID | None = None
    mcp_tool_name: str = ""
    created_by_id: UUID | None = None
    last_updated_by_id: UUID | None = None
    created_at: datetime | None = None
    updated_at: datetime | None = None
    version: int = 1


class State(IntEnum):
    """The state of a call; the numbers are those of ReceiptState in the proto, and stored."""

    RESERVED = 1
    STARTED = 2
    DONE = 3
    UNKNOWN = 4


class Outcome(IntEnum):
    """The outcome of a call; the numbers are those of Outcome in the proto, and stored."""

    NONE = 0
    SUCCESS = 1
    RAISED = 2
    INVALID_ARGUMENTS = 3
    TIMEOUT = 4
    OUT_OF_MEMORY = 5
    BAD_OUTPUT = 6
    KILLED = 7
    CANCELLED = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class NewFile:
    """A file to be kept. `created_by_id` is the user for whom it is."""

    id: UUID
    name: str
    content: bytes = field(repr=False)
    created_by_id: UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """The end of a call, as its receipt has it. `result` is JSON text, "" unless it succeeded."""

    state: State
    outcome: Outcome
    tool_return: str
    result: str = ""
    stdout: str = ""
    stderr: str = ""
    output_order: tuple[tuple[int, int], ...] = ()  # (stream, characters): 1 stdout, 2 stderr
    block_edits: tuple[tuple[str, str], ...] = ()
    files: tuple[NewFile, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call to be run: what a receipt begins with. `arguments` are as they came, still unchecked."""

    call_key: str
    tool_id: UUID
    arguments: str
    agent_id: UUID | None = None
    seconds: float | None = None
    environment: dict[str, str] = field(default_factory=dict, repr=False)
    run_id: UUID | None = None
    step_id: UUID | None = None
    agent_state: str = field(default="", repr=False)  # JSON text
    client_token: str = field(default="", repr=False)
    file_ids: tuple[UUID, ...] = ()
    agent_tool_ids: tuple[UUID, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """The record of a call."""

    call_key: str
    tool_id: UUID
    tool_version: int
    arguments_hash: str
    state: State
    owner_id: UUID
    owner_alive: bool = True
    cancel_requested: bool = False
    outcome: Outcome = Outcome.NONE
    result: str = ""
    tool_return: str = ""
    stdout: str = ""
    stderr: str = ""
    sandbox: str = ""
    image: str = ""
    output_hash: str = ""
    output_order: tuple[tuple[int, int], ...] = ()
    block_edits: tuple[tuple[str, str], ...] = ()
    tool_name: str = ""
    agent_id: UUID | None = None
    run_id: UUID | None = None
    step_id: UUID | None = None
    limits: Mapping[str, Any] = field(default_factory=dict)
    settings: str = ""  # fingerprint of the sandbox settings that held
    files: tuple["KeptFile", ...] = ()
    reserved_at: datetime | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None


# The tool of a receipt whose call was cancelled before it came.
NO_TOOL = UUID(int=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptFile:
    """A file given to calls, or made by one, without its content. `size` in bytes, `sha256` hexadecimal."""

    id: UUID
    name: str
    size: int
    sha256: str
    call_key: str | None = None
    agent_id: UUID | None = None
    created_at: datetime | None = None
