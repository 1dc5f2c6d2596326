"""The ports of groups: their store, and the blocks that members share."""

from collections.abc import Sequence
from typing import Protocol
from uuid import UUID

from services.agent.resources.groups.model import Group, GroupList, GroupSettings
from services.common.core.paging import PageOf


class GroupStore(Protocol):
    """Groups of a tenant."""

    async def get(self, organization_id: UUID, group_id: UUID) -> Group:
        """Raises NotFound (GROUP_NOT_FOUND)."""
        ...

    async def list(self, organization_id: UUID, filters: GroupList) -> PageOf[Group]:
        """Returns one page. Raises NotFound (CURSOR_NOT_FOUND) for an unknown cursor, Refused (PAGE_TOKEN_INVALID)."""
        ...

    async def count(self, organization_id: UUID) -> int:
        """Returns how many there are, hidden ones too."""
        ...

    async def check_agents(self, organization_id: UUID, agent_ids: frozenset[UUID]) -> None:
        """Raises NotFound (AGENT_NOT_FOUND) for one that is not there."""
        ...

    async def insert(self, organization_id: UUID, group_id: UUID, user_id: UUID, settings: GroupSettings) -> Group:
        """Stores it, or returns the one that has the id. Raises NotFound (AGENT_NOT_FOUND)."""
        ...

    async def update(self, organization_id: UUID, user_id: UUID, before: Group, after: Group) -> Group | None:
        """Stores what it shall be; None when `before` is not the present one any more.

        Raises NotFound (AGENT_NOT_FOUND).
        """
        ...

    async def delete(self, organization_id: UUID, group_id: UUID) -> None:
        """Raises NotFound (GROUP_NOT_FOUND)."""
        ...


class SharedBlocks(Protocol):
    """Blocks of members, in the memory service. Every call may be repeated."""

    async def attachments(self, agent_ids: Sequence[UUID]) -> frozenset[tuple[UUID, UUID]]:
        """Returns each agent with each block that is attached to it, in one call."""
        ...

    async def attach_block(self, agent_id: UUID, block_id: UUID) -> None:
        """Raises NotFound (BLOCK_NOT_FOUND), AlreadyExists (BLOCK_LABEL_TAKEN)."""
        ...

    async def detach_block(self, agent_id: UUID, block_id: UUID) -> None:
        """Detaches a block; one that is not attached stays so."""
        ...
