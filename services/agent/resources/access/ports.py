"""The ports of access: credentials, tenants, and the end of tenants."""

from collections.abc import Sequence
from typing import Protocol
from uuid import UUID

from services.agent.resources.access.model import (
    ApiKey,
    ApiKeySettings,
    ClientToken,
    ClientTokenSettings,
    Organization,
    Principal,
    User,
)
from services.common.core.paging import Page, PageOf


class CredentialStore(Protocol):
    """Keys and tokens of all tenants."""

    async def find(self, credential_hash: bytes) -> Principal | None:
        """Returns its caller; None where it is unknown, over, or its tenant or user is gone. Notes the use."""
        ...

    async def create_key(
        self, organization_id: UUID, by: UUID, settings: ApiKeySettings, *, anywhere: bool
    ) -> tuple[str, ApiKey]:
        """Returns the secret of the new key, and the key.

        anywhere: its user may be of another tenant, whose key it then is. Raises NotFound (USER_NOT_FOUND).
        """
        ...

    async def list_keys(self, organization_id: UUID, page: Page) -> PageOf[ApiKey]:
        """Returns one page, oldest first. Raises Refused (PAGE_TOKEN_INVALID)."""
        ...

    async def delete_key(self, organization_id: UUID, key_id: UUID, *, anywhere: bool) -> None:
        """Deletes it with the tokens that were made with it. Raises NotFound (API_KEY_NOT_FOUND)."""
        ...

    async def create_token(
        self, organization_id: UUID, by: UUID, settings: ClientTokenSettings, key_id: UUID | None
    ) -> tuple[str, ClientToken]:
        """Returns the secret of the new token, and the token, which ends with the key at the latest.

        Raises NotFound (AGENT_NOT_FOUND), Unauthenticated (CREDENTIAL_INVALID) where the key is gone.
        """
        ...

    async def list_tokens(
        self, organization_id: UUID, size: int, offset: int, agent_id: UUID | None
    ) -> tuple[Sequence[ClientToken], bool]:
        """Returns those that are not over, newest first; and whether there are more."""
        ...

    async def delete_token(self, organization_id: UUID, token_id: UUID) -> None:
        """Raises NotFound (CLIENT_TOKEN_NOT_FOUND)."""
        ...


class TenantStore(Protocol):
    """Organizations and their users. Deleted ones are not there. `within`: only this tenant; None: all."""

    async def create_organization(self, name: str) -> Organization:
        """Creates a tenant with one user of the same UUID."""
        ...

    async def list_organizations(self, within: UUID | None, page: Page) -> PageOf[Organization]:
        """Returns one page. Raises NotFound (CURSOR_NOT_FOUND) for an unknown cursor, Refused."""
        ...

    async def rename_organization(self, organization_id: UUID, name: str) -> Organization:
        """Raises NotFound (ORGANIZATION_NOT_FOUND)."""
        ...

    async def delete_organization(self, organization_id: UUID, by: UUID) -> Organization:
        """Ends its keys and orders the end of all else. Raises NotFound (ORGANIZATION_NOT_FOUND)."""
        ...

    async def create_user(self, organization_id: UUID, name: str) -> User:
        """Raises NotFound (ORGANIZATION_NOT_FOUND)."""
        ...

    async def list_users(self, within: UUID | None, page: Page) -> PageOf[User]:
        """Returns one page. Raises NotFound (CURSOR_NOT_FOUND) for an unknown cursor, Refused."""
        ...

    async def rename_user(self, within: UUID | None, user_id: UUID, name: str) -> User:
        """Raises NotFound (USER_NOT_FOUND)."""
        ...

    async def delete_user(self, within: UUID | None, user_id: UUID) -> User:
        """Ends its keys. Raises NotFound (USER_NOT_FOUND)."""
        ...


class TenantPeers(Protocol):
    """The data of a deleted tenant in the services behind this one."""

    async def purge(self) -> bool:
        """Erases it for the tenant of the current context; False while there is some left. May be repeated."""
        ...


class TenantEraser(Protocol):
    """The data of a deleted tenant in this service."""

    async def agents(self, organization_id: UUID, most: int) -> Sequence[UUID]:
        """Returns some of its agents that are not deleted yet."""
        ...

    async def erase(self, organization_id: UUID) -> bool:
        """Erases what hangs on no agent; False while there are agents left, or more. May be repeated."""
        ...

    async def forget(self, organization_id: UUID) -> None:
        """Erases what showed that there was such a tenant: itself, its users, other orders. May be repeated."""
        ...
