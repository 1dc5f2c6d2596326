"""What the memory service deals in, as plain values. Nothing here knows SQL or protobuf."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum
from typing import Any, TypedDict
from uuid import UUID

from services.common.refusals import Refused as Refused

JsonObject = dict[str, Any]

DEFAULT_LIMIT = 100_000


class Operation(IntEnum):
    """How a version of a block came to be; the numbers are those of BlockOperation in the proto, and stored."""

    CREATE = 1
    SET = 2
    APPEND = 3
    INSERT = 4
    REPLACE = 5
    RESTORE = 6
    REWRITE = 7
    PATCH = 8
    UNDO = 9
    REDO = 10


class BlockChanges(TypedDict, total=False):
    """New values of those fields of a block that a client may set."""

    label: str
    value: str
    limit: int
    description: str | None
    read_only: bool
    hidden: bool
    metadata: JsonObject
    tags: tuple[str, ...]
    project_id: str | None
    template_name: str | None
    is_template: bool
    template_id: str | None
    base_template_id: str | None
    deployment_id: str | None
    entity_id: str | None
    preserve_on_migration: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockDraft:
    """A block to create. `id` is None where the service mints it."""

    id: UUID | None
    label: str
    value: str = ""
    limit: int = DEFAULT_LIMIT
    description: str | None = None
    read_only: bool = False
    hidden: bool = False
    metadata: JsonObject = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    project_id: str | None = None
    template_name: str | None = None
    is_template: bool = False
    template_id: str | None = None
    base_template_id: str | None = None
    deployment_id: str | None = None
    entity_id: str | None = None
    preserve_on_migration: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A block as stored; see loci.memory.v1.Block for the fields."""

    id: UUID
    label: str
    value: str
    limit: int
    description: str | None
    read_only: bool
    hidden: bool
    metadata: JsonObject
    tags: tuple[str, ...]
    project_id: str | None
    template_name: str | None
    is_template: bool
    created_by_id: UUID
    last_updated_by_id: UUID
    created_at: datetime
    updated_at: datetime
    version: int
    template_id: str | None = None
    base_template_id: str | None = None
    deployment_id: str | None = None
    entity_id: str | None = None
    preserve_on_migration: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockVersion:
    """One row of a block's history; the ids of agent, run, step and call are None for a change by the API.

    restored_version: whose value this one brought back, None for all but RESTORE, UNDO and REDO.
    redo_version: see core/undo.py.
    """

    block_id: UUID
    version: int
    label: str
    value: str
    limit: int
    description: str | None
    metadata: JsonObject
    operation: Operation
    actor_id: UUID
    agent_id: UUID | None
    run_id: UUID | None
    step_id: UUID | None
    call_key: str | None
    created_at: datetime
    restored_version: int | None = None
    redo_version: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """What history says of a version that brings an earlier value back; see BlockVersion."""

    version: int
    redo_version: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Who makes a change, for history."""

    actor_id: UUID
    agent_id: UUID | None = None
    run_id: UUID | None = None
    step_id: UUID | None = None
    call_key: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingModel:
    """A model and the length of its vectors. `id` is ours, small, and stands as a literal in SQL."""

    id: int
    handle: str
    dimensions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive:
    """An archive as stored, with the counts that ranking needs.

    embedding: the handle it was made for; None: text alone. model: that of its vectors, None before the first.
    """

    id: UUID
    name: str
    description: str | None
    embedding: str | None
    model: EmbeddingModel | None
    metadata: JsonObject
    passage_count: int
    word_count: int
    created_by_id: UUID
    last_updated_by_id: UUID
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveDraft:
    """An archive to create, with its id minted. embedding: a handle, or empty. dimensions: of its vectors, or 0."""

    id: UUID
    name: str
    description: str | None = None
    embedding: str = ""
    metadata: JsonObject = field(default_factory=dict)
    dimensions: int = 0


class ArchiveChanges(TypedDict, total=False):
    """New values of those fields of an archive that a client may change."""

    name: str
    description: str | None
    metadata: JsonObject


@dataclass(frozen=True, slots=True)
class DirectoryFile:
    """A file as the prompt shows it. `status` as in files.model.FileStatus; `visible_content` is empty unless open."""

    file_id: UUID
    name: str
    status: int
    is_open: bool
    visible_content: str = ""


@dataclass(frozen=True, slots=True)
class Directory:
    """A folder as the prompt shows it: its open files, and the others by name as far as they are listed."""

    name: str
    description: str
    instructions: str
    files: tuple[DirectoryFile, ...]
    file_count: int


@dataclass(frozen=True, slots=True)
class FileLimits:
    """What an agent may have in view: so many files, so many characters of each."""

    most_open: int = 5
    view_chars: int = 50_000


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentMemory:
    """What one agent remembers: blocks in the order of attachment, archives with the default one first.

    isolated_block_ids: those of the blocks that are copies of the conversation that was asked for.
    """

    agent_id: UUID
    blocks: tuple[Block, ...] = ()
    archives: tuple[Archive, ...] = ()
    passage_count: int = 0
    passage_tags: tuple[str, ...] = ()
    isolated_block_ids: tuple[UUID, ...] = ()
    directories: tuple[Directory, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PassageDraft:
    """A passage to create, with its id minted. embedding: its vector where the caller has it, else empty."""

    id: UUID
    text: str
    tags: tuple[str, ...] = ()
    metadata: JsonObject = field(default_factory=dict)
    created_at: datetime | None = None
    embedding: tuple[float, ...] = ()


class PassageChanges(TypedDict, total=False):
    """New values of those fields of a passage that a client may change."""

    text: str
    tags: tuple[str, ...]
    metadata: JsonObject
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePiece:
    """Where in a file a passage is from; see loci.memory.v1.FilePiece. `file_name` is `folder/name`."""

    file_id: UUID
    file_name: str
    place: int
    first_line: int
    last_line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A passage as stored; `embedding` is the handle of the model whose vector it has, None without one.

    file: set for a piece of a file, whose archive has the id of the folder.
    """

    id: UUID
    archive_id: UUID
    text: str
    tags: tuple[str, ...]
    metadata: JsonObject
    embedding: str | None
    created_by_id: UUID
    last_updated_by_id: UUID
    created_at: datetime
    updated_at: datetime
    file: FilePiece | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """One call of a memory tool, as the agent service sends it.

    organization_id and user_id come from the call context. embedding: the handle for a default archive that
    must be made, or empty. timezone: IANA name. conversation_id: whose copies of blocks are meant where it has
    some. create_missing_block: whether memory_rethink makes a block that is not there.
    """

    organization_id: UUID
    user_id: UUID
    agent_id: UUID
    run_id: UUID | None
    step_id: UUID | None
    call_key: str
    tool_name: str
    arguments_json: str
    embedding: str = ""
    timezone: str = "UTC"
    conversation_id: UUID | None = None
    create_missing_block: bool = False
    limits: FileLimits = FileLimits()

    @property
    def origin(self) -> Origin:
        """For the history row."""
        return Origin(
            actor_id=self.user_id,
            agent_id=self.agent_id,
            run_id=self.run_id,
            step_id=self.step_id,
            call_key=self.call_key,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRecord:
    """What is kept under a call key: a fingerprint of the question, and the answer."""

    call_key: str
    agent_id: UUID
    tool_name: str
    arguments_hash: bytes
    tool_return: str
    is_error: bool
    changed_block_ids: tuple[UUID, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueEdit:
    """A new value that a tool call made of a block, and the call's result."""

    value: str
    operation: Operation
    origin: Origin
    record: CallRecord


@dataclass(frozen=True, slots=True)
class ValueChange:
    """Edits of one block, one at least, the first made of `before` and each other of what the one before it left."""

    before: Block
    edits: Sequence[ValueEdit]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """What the model is told, and the blocks the call changed as they are now."""

    tool_return: str
    is_error: bool
    changed_blocks: tuple[Block, ...] = ()
