"""The memory of an agent as a whole, and requests about it."""

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from services.memory.agent_files.model import Directory
from services.memory.archives.model import Archive
from services.memory.blocks.model import Block, Origin


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentMemory:
    """The memory of one agent: blocks in the order of attachment, archives with the default one first.

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
class RestoreRequest:
    """Blocks to set back: version by block id. Whose they must be, and who asks."""

    organization_id: UUID
    agent_id: UUID
    conversation_id: UUID | None
    versions: Mapping[UUID, int]
    request_id: str
    origin: Origin


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyRequest:
    """An agent's memory to copy for another: version by block id for those that shall be as they were."""

    organization_id: UUID
    source_agent_id: UUID
    source_conversation_id: UUID | None
    target_agent_id: UUID
    versions: Mapping[UUID, int]
    request_id: str
    origin: Origin


@dataclass(frozen=True, slots=True)
class BlockEdit:
    """A version of a block that a run made, in a step unless that is None."""

    block_id: UUID
    version: int
    run_id: UUID
    step_id: UUID | None
