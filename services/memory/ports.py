"""What the handlers need from outside: stores and an embedder. `adapters/` has them on Postgres and gRPC.

Every method of a store takes the tenant first; the servicers take it from the verified call context.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol
from uuid import UUID

from services.common.paging import Page, PageBy, PageOf
from services.memory.archival.passages import PassageFilter
from services.memory.archival.search import Part, Ranked, Scope
from services.memory.lists import BlockList
from services.memory.model import (
    AgentMemory,
    Block,
    BlockDraft,
    BlockVersion,
    CallRecord,
    EmbeddingModel,
    Operation,
    Origin,
    Restored,
    ValueChange,
)


class VersionConflict(Exception):
    """Somebody changed the block since it was read; read again. Never leaves the service."""

    def __init__(self, block_id: UUID) -> None:
        super().__init__(f"block {block_id} changed meanwhile")
        self.block_id = block_id


class CallRepeated(Exception):
    """There is a result under the call's key. Never leaves the service."""


@dataclass(frozen=True, slots=True)
class BlockById:
    """A block by its id."""

    block_id: UUID


@dataclass(frozen=True, slots=True)
class BlockByLabel:
    """The block that an agent knows by this label."""

    agent_id: UUID
    label: str


BlockKey = BlockById | BlockByLabel


@dataclass(frozen=True, slots=True)
class Look:
    """What an edit by a tool asks for: whose block of which label, and whether the call was applied."""

    agent_id: UUID
    call_key: str
    label: str
    conversation_id: UUID | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EditView:
    """What an edit by a tool has to know: the answer if it was applied, the agent's labels, the block."""

    record: CallRecord | None
    labels: tuple[str, ...]
    block: Block | None


class Embedder(Protocol):
    """Turns texts into vectors."""

    async def embed(self, handle: str, texts: Sequence[str], seconds: float) -> list[list[float]]:
        """One vector per text, all of one length, by that model. Raises LociError, also after `seconds`."""

    async def check(self, handle: str, seconds: float) -> None:
        """Raises NotFound (MODEL_NOT_FOUND) for a handle that is not configured."""


class BlockStore(Protocol):
    """Blocks, their history and their attachment to agents."""

    async def get(self, organization_id: UUID, key: BlockKey) -> Block:
        """Raises NotFound (BLOCK_NOT_FOUND)."""

    async def create(self, organization_id: UUID, user_id: UUID, draft: BlockDraft) -> Block:
        """The draft has an id. Raises AlreadyExists (BLOCK_ID_TAKEN) unless the same was created before."""

    async def commit(
        self,
        organization_id: UUID,
        after: Block,
        operation: Operation,
        origin: Origin,
        restored: Restored | None = None,
    ) -> Block:
        """Stores a new version with its row of history.

        `after` carries the version that was read. Raises VersionConflict when that is stale.
        """

    async def commit_values(self, organization_id: UUID, changes: Sequence[ValueChange]) -> list[list[Block] | None]:
        """Stores edits of different blocks in one statement: a version, its row of history and the call's result each.

        Per block all or nothing: the block after each edit; None where it is not as it was, or, for all blocks, where
        there is a result under the key of one of the calls.
        """

    async def delete(self, organization_id: UUID, block_id: UUID) -> None:
        """With history and attachments. Raises NotFound."""

    async def attach(self, organization_id: UUID, agent_id: UUID, block_id: UUID) -> None:
        """Raises NotFound, AlreadyExists (BLOCK_LABEL_TAKEN)."""

    async def detach(self, organization_id: UUID, agent_id: UUID, block_id: UUID) -> None:
        """Raises NotFound (BLOCK_NOT_ATTACHED)."""

    async def agents_of(self, organization_id: UUID, block_id: UUID) -> list[UUID]:
        """In the order of attachment."""


class AgentStore(Protocol):
    """An agent's memory as a whole."""

    async def memory(self, organization_id: UUID, agent_id: UUID, conversation_id: UUID | None = None) -> AgentMemory:
        """In one statement: it is on the path of every turn. With the copies of a conversation if one is given."""

    async def memories(self, organization_id: UUID, agent_ids: Sequence[UUID]) -> list[AgentMemory]:
        """In the order asked, without counts and tags of passages; a constant number of statements."""

    async def create(
        self,
        organization_id: UUID,
        user_id: UUID,
        agent_id: UUID,
        drafts: Sequence[BlockDraft],
        block_ids: Sequence[UUID],
    ) -> None:
        """Creates and attaches, all or nothing. Raises as BlockStore.create and attach."""

    async def purge(self, organization_id: UUID, agent_id: UUID, *, erase_blocks: bool) -> None:
        """See AgentMemoryService.PurgeAgent."""

    async def purge_organization(self, organization_id: UUID) -> bool:
        """Erases rows of the tenant in all tables; False while there are some left. May be repeated."""


class CallStore(Protocol):
    """Results of tool calls by their key."""

    async def views(self, organization_id: UUID, looks: Sequence[Look]) -> list[EditView]:
        """In one statement, one for each; the block is the conversation's copy where it has one."""

    async def find(self, organization_id: UUID, call_key: str) -> CallRecord | None:
        """The call's result, if it was applied."""

    async def record(self, organization_id: UUID, record: CallRecord) -> CallRecord:
        """Keeps a result unless there is one; returns the one that is kept."""

    async def blocks(self, organization_id: UUID, block_ids: Sequence[UUID]) -> list[Block]:
        """Those that still exist."""

    async def forget(self, older_than: timedelta, limit: int) -> int:
        """Deletes at most `limit` of the oldest results, of all tenants; returns how many."""


class Rankings(Protocol):
    """Passages in the order in which they answer a question; the best `limit` of those that are wanted."""

    async def by_words(
        self, organization_id: UUID, scope: Scope, query: str, wanted: PassageFilter, limit: int
    ) -> list[Ranked]:
        """BM25, with document frequencies of the scope."""

    async def by_vector(
        self,
        organization_id: UUID,
        part: Part,
        model: EmbeddingModel,
        vector: Sequence[float],
        wanted: PassageFilter,
        limit: int,
    ) -> list[Ranked]:
        """Cosine similarity; the part is that of the scope which has vectors of this model."""


class Lists(Protocol):
    """Pages for administration."""

    async def blocks(self, organization_id: UUID, wanted: BlockList, page: Page) -> PageOf[Block]:
        """Raises NotFound (BLOCK_NOT_FOUND) for a cursor that does not exist."""

    async def count_blocks(self, organization_id: UUID, identity_ids: Sequence[UUID] = ()) -> int:
        """Hidden ones too; those about one of `identity_ids`, all without any."""

    async def block_tags(self, organization_id: UUID, page: PageBy[str], query_text: str) -> Sequence[str]:
        """Each once, in the order of the page."""

    async def versions(self, organization_id: UUID, block_id: UUID, page: PageBy[int]) -> PageOf[BlockVersion]:
        """Raises NotFound (BLOCK_NOT_FOUND)."""
