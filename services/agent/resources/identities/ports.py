"""The ports of identities: their store, and the blocks about them."""

from collections.abc import Mapping, Sequence
from typing import Protocol
from uuid import UUID

from services.agent.resources.identities.model import Identity, IdentityList, IdentitySettings, Property
from services.common.core.paging import PageOf


class IdentityStore(Protocol):
    """Identities of a tenant, without their blocks."""

    async def get(self, organization_id: UUID, identity_id: UUID) -> Identity:
        """Raises NotFound (IDENTITY_NOT_FOUND)."""
        ...

    async def find(self, organization_id: UUID, identifier_key: str, project_id: str | None) -> UUID | None:
        """Returns the id of the identity that has a key in a project."""
        ...

    async def list(self, organization_id: UUID, filters: IdentityList) -> PageOf[Identity]:
        """One page. Raises NotFound (CURSOR_NOT_FOUND) for an unknown cursor, Refused (PAGE_TOKEN_INVALID)."""
        ...

    async def count(self, organization_id: UUID) -> int:
        """Returns all of them."""
        ...

    async def insert(
        self, organization_id: UUID, identity_id: UUID, user_id: UUID, settings: IdentitySettings
    ) -> Identity:
        """Stores it, or returns the one that has the id.

        Raises NotFound (AGENT_NOT_FOUND), AlreadyExists (IDENTITY_KEY_TAKEN).
        """
        ...

    async def update(
        self, organization_id: UUID, identity_id: UUID, user_id: UUID, draft: IdentitySettings, names: frozenset[str]
    ) -> Identity:
        """Stores the fields of the draft that are named, but for its blocks. Raises as `get` and `insert`."""
        ...

    async def upsert_properties(
        self, organization_id: UUID, identity_id: UUID, user_id: UUID, properties: Sequence[Property]
    ) -> Identity:
        """Sets properties by their keys. Raises NotFound (IDENTITY_NOT_FOUND), Refused (IDENTITY_INVALID)."""
        ...

    async def delete(self, organization_id: UUID, identity_id: UUID, user_id: UUID) -> None:
        """Deletes it and orders that memory forgets it. Raises NotFound (IDENTITY_NOT_FOUND)."""
        ...

    async def attach(self, organization_id: UUID, agent_id: UUID, identity_id: UUID) -> None:
        """May be repeated. Raises NotFound (AGENT_NOT_FOUND, IDENTITY_NOT_FOUND)."""
        ...

    async def detach(self, organization_id: UUID, agent_id: UUID, identity_id: UUID) -> None:
        """May be repeated. Raises NotFound (AGENT_NOT_FOUND, IDENTITY_NOT_FOUND)."""
        ...

    async def check(self, organization_id: UUID, identity_ids: Sequence[UUID]) -> None:
        """Raises NotFound (IDENTITY_NOT_FOUND) for the first that is not there."""
        ...

    async def set_of_agent(self, organization_id: UUID, agent_id: UUID, identity_ids: Sequence[UUID]) -> None:
        """Makes these all that an agent serves. Raises NotFound (AGENT_NOT_FOUND, IDENTITY_NOT_FOUND)."""
        ...


class IdentityMemories(Protocol):
    """Blocks about identities, in the memory service."""

    async def set_blocks(self, identity_id: UUID, block_ids: Sequence[UUID]) -> None:
        """Makes these all of an identity's, or nothing. May be repeated. Raises NotFound (BLOCK_NOT_FOUND)."""
        ...

    async def blocks_of(self, identity_ids: Sequence[UUID]) -> Mapping[UUID, tuple[UUID, ...]]:
        """Returns blocks of each identity that has any, in one call; none where nothing is asked for."""
        ...

    async def purge_identity(self, identity_id: UUID) -> None:
        """Forgets an identity; its blocks stay. May be repeated."""
        ...
