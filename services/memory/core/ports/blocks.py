"""Stores of blocks, their versions, and the identities they are about.

Every method of a store takes the tenant first; the servicers take it from the verified call context.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol
from uuid import UUID

from services.common.core.paging import Page, PageBy, PageOf
from services.memory.agent_tools.model import ValueChange
from services.memory.blocks.model import (
    Block,
    BlockDraft,
    BlockKey,
    BlockList,
    BlockVersion,
    Operation,
    Origin,
    Restoration,
)


class BlockStore(Protocol):
    """Blocks, their history and their attachment to agents."""

    async def get(self, organization_id: UUID, key: BlockKey) -> Block:
        """Raises NotFound (BLOCK_NOT_FOUND)."""

    async def create(self, organization_id: UUID, user_id: UUID, draft: BlockDraft) -> Block:
        """Returns the draft has an id. Raises AlreadyExists (BLOCK_ID_TAKEN) unless the same was created before."""

    async def commit(
        self,
        organization_id: UUID,
        after: Block,
        operation: Operation,
        origin: Origin,
        restored: Restoration | None = None,
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
        """Deletes it with history and attachments. Raises NotFound."""

    async def attach(self, organization_id: UUID, agent_id: UUID, block_id: UUID) -> None:
        """Raises NotFound, AlreadyExists (BLOCK_LABEL_TAKEN)."""

    async def detach(self, organization_id: UUID, agent_id: UUID, block_id: UUID) -> None:
        """Raises NotFound (BLOCK_NOT_ATTACHED)."""

    async def agents_of(self, organization_id: UUID, block_id: UUID) -> list[UUID]:
        """Returns agents in the order of attachment."""


class BlockLists(Protocol):
    """Pages for administration."""

    async def blocks(self, organization_id: UUID, filters: BlockList, page: Page) -> PageOf[Block]:
        """Raises NotFound (CURSOR_NOT_FOUND) for a cursor that does not exist."""

    async def count_blocks(self, organization_id: UUID, identity_ids: Sequence[UUID] = ()) -> int:
        """Returns the number of blocks, hidden ones too: those about one of `identity_ids`, or all."""

    async def block_tags(self, organization_id: UUID, page: PageBy[str], query_text: str) -> Sequence[str]:
        """Returns each tag once, in the order of the page."""

    async def versions(self, organization_id: UUID, block_id: UUID, page: PageBy[int]) -> PageOf[BlockVersion]:
        """Raises NotFound (BLOCK_NOT_FOUND)."""


class HistoryStore(Protocol):
    """Versions of blocks. Every method raises NotFound (BLOCK_VERSION_NOT_FOUND)."""

    async def version(self, organization_id: UUID, block_id: UUID, version: int) -> BlockVersion:
        """Returns the version of this number."""

    async def as_of(self, organization_id: UUID, block_id: UUID, time: datetime) -> BlockVersion:
        """Returns the version that stood at this time."""

    async def changed(self, organization_id: UUID, block_id: UUID, version: int) -> BlockVersion:
        """Returns the newest at or below this number that changed the value, which all up to this one have."""


class IdentityStore(Protocol):
    """Links of blocks to identities, which the agent service has."""

    async def attach(self, organization_id: UUID, block_id: UUID, identity_id: UUID) -> None:
        """Does it once, however often it is asked. Raises NotFound (BLOCK_NOT_FOUND)."""

    async def detach(self, organization_id: UUID, block_id: UUID, identity_id: UUID) -> None:
        """Does it once, however often it is asked. Raises NotFound (BLOCK_NOT_FOUND)."""

    async def set_blocks(self, organization_id: UUID, identity_id: UUID, block_ids: Sequence[UUID]) -> None:
        """Makes these all of an identity's, or nothing. May be repeated. Raises NotFound (BLOCK_NOT_FOUND)."""

    async def blocks_of(self, organization_id: UUID, identity_ids: Sequence[UUID]) -> Mapping[UUID, Sequence[UUID]]:
        """Returns the blocks of each identity that has any, in the order of attachment; in one statement."""

    async def purge(self, organization_id: UUID, identity_id: UUID) -> None:
        """Forgets an identity. May be repeated."""
