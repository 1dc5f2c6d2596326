"""Calls of memory tools, their results, and the edits that they make."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

from services.memory.agent_files.model import FileLimits
from services.memory.blocks.model import Block, Operation, Origin


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """One call of a memory tool, as the agent service sends it.

    organization_id and user_id come from the call context. embedding: the handle for a default archive that
    must be made, or empty. timezone: IANA name. conversation_id: whose copies of blocks are meant where it has
    some. create_missing_block: whether memory_rethink makes a block that is not there. agent_name: after which a
    default archive is named.
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
    limits: FileLimits = field(default_factory=FileLimits)
    agent_name: str = ""

    @property
    def origin(self) -> Origin:
        """Returns the origin of its changes, for history."""
        return Origin(
            actor_id=self.user_id,
            agent_id=self.agent_id,
            run_id=self.run_id,
            step_id=self.step_id,
            call_key=self.call_key,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRecord:
    """The record under a call key: a fingerprint of the question, and the answer."""

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
    """The answer for the model, and the blocks that the call changed as they are now."""

    tool_return: str
    is_error: bool
    changed_blocks: tuple[Block, ...] = ()


@dataclass(frozen=True, slots=True)
class EditLookup:
    """The question of an edit by a tool: whose block of which label, and whether the call was applied."""

    agent_id: UUID
    call_key: str
    label: str
    conversation_id: UUID | None = None
    # The run and the fence of who asks.
    owner: tuple[UUID | None, int] = (None, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class EditContext:
    """The knowledge that an edit by a tool needs: the answer if it was applied, the agent's labels, the block.

    `fenced`: a later owner has the run.
    """

    record: CallRecord | None
    labels: tuple[str, ...]
    block: Block | None
    fenced: bool = False
