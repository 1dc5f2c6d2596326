"""Whom blocks are about, as a Protocol over plain values."""

from collections.abc import Mapping, Sequence
from typing import Protocol
from uuid import UUID


class IdentityStore(Protocol):
    """Links of blocks to identities, which the agent service has."""

    async def attach(self, organization_id: UUID, block_id: UUID, identity_id: UUID) -> None:
        """May be repeated. Raises NotFound (BLOCK_NOT_FOUND)."""

    async def detach(self, organization_id: UUID, block_id: UUID, identity_id: UUID) -> None:
        """May be repeated. Raises NotFound (BLOCK_NOT_FOUND)."""

    async def set_blocks(self, organization_id: UUID, identity_id: UUID, block_ids: Sequence[UUID]) -> None:
        """Makes these all of an identity's, or nothing. May be repeated. Raises NotFound (BLOCK_NOT_FOUND)."""

    async def blocks_of(self, organization_id: UUID, identity_ids: Sequence[UUID]) -> Mapping[UUID, Sequence[UUID]]:
        """Blocks of each identity that has any, in the order of attachment; in one statement."""

    async def purge(self, organization_id: UUID, identity_id: UUID) -> None:
        """Forgets an identity. May be repeated."""
