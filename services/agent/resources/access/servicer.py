"""AccessService: whom keys stand for, and who may make them."""

from datetime import UTC, datetime
from typing import Any

from loci.agent.v1 import access_service_pb2 as wire
from loci.agent.v1 import access_service_pb2_grpc
from services.agent.resources.access.convert import (
    key_drafts,
    keys,
    new_name,
    organization_drafts,
    organizations,
    principal_to_proto,
    token_drafts,
    tokens,
    user_drafts,
    users,
)
from services.agent.resources.access.model import check_key, check_token
from services.agent.resources.access.ports import CredentialStore
from services.agent.resources.access.service import Tenants, is_operator, needs
from services.agent.resources.callbacks.service import secret_of
from services.common.context import current
from services.common.errors import InvalidArgument, Unauthenticated
from services.common.ids import from_public, optional_id
from services.common.page_requests import allow, page_by_id

_PER_PAGE = 50
_TOKENS_PER_PAGE = 10
_EDGE = "edge"
# Who may open a door to browsers.
_MAKERS = ("admin", "developer")


class AccessServicer(access_service_pb2_grpc.AccessServiceServicer):
    """loci.agent.v1.AccessService."""

    def __init__(self, credentials: CredentialStore, tenants: Tenants, callback_secret: bytes) -> None:
        self._credentials = credentials
        self._tenants = tenants
        self._callback_secret = callback_secret

    async def Authenticate(self, request: wire.AuthenticateRequest, context: Any) -> wire.AuthenticateResponse:
        """Returns the caller that a credential stands for; for edges."""
        needs(current(), _EDGE)
        known = await self._credentials.find(request.credential_hash)
        if known is None:
            sentence = "this key or token is not known, or its time is over"
            raise Unauthenticated(sentence, reason="CREDENTIAL_INVALID")
        return principal_to_proto(known)

    async def CreateApiKey(self, request: wire.CreateApiKeyRequest, context: Any) -> wire.CreateApiKeyResponse:
        """Creates a key of the caller's tenant; the operator may name a user of another."""
        caller = current()
        needs(caller, "admin")
        settings = check_key(key_drafts.draft(request.key).values, datetime.now(UTC))
        secret, key = await self._credentials.create_key(
            caller.organization_id, caller.user_id, settings, anywhere=is_operator(caller)
        )
        return wire.CreateApiKeyResponse(secret=secret, key=keys.encode(key))

    async def ListApiKeys(self, request: wire.ListApiKeysRequest, context: Any) -> wire.ListApiKeysResponse:
        """Returns one page."""
        needs(current(), "admin")
        allow(request.page, "page_size", "page_token")
        page = page_by_id(request.page, "key", _PER_PAGE, ascending=True)
        listed = await self._credentials.list_keys(current().organization_id, page)
        return wire.ListApiKeysResponse(keys=map(keys.encode, listed.items), next_page_token=listed.next_token)

    async def DeleteApiKey(self, request: wire.DeleteApiKeyRequest, context: Any) -> wire.DeleteApiKeyResponse:
        """Deletes a key of the caller's tenant; for the operator any."""
        caller = current()
        needs(caller, "admin")
        key_id = from_public("key", request.key_id)
        await self._credentials.delete_key(caller.organization_id, key_id, anywhere=is_operator(caller))
        return wire.DeleteApiKeyResponse()

    async def CreateClientToken(
        self, request: wire.CreateClientTokenRequest, context: Any
    ) -> wire.CreateClientTokenResponse:
        """Creates a token for agents of the caller's tenant."""
        caller = current()
        needs(caller, *_MAKERS)
        settings = check_token(token_drafts.draft(request.token).values, datetime.now(UTC))
        made_with = caller.credential_id
        key_id = from_public("key", made_with) if made_with.startswith("key-") else None
        secret, token = await self._credentials.create_token(caller.organization_id, caller.user_id, settings, key_id)
        return wire.CreateClientTokenResponse(secret=secret, token=tokens.encode(token))

    async def ListClientTokens(
        self, request: wire.ListClientTokensRequest, context: Any
    ) -> wire.ListClientTokensResponse:
        """Returns one page."""
        needs(current(), *_MAKERS)
        agent_id = from_public("agent", request.agent_id) if request.HasField("agent_id") else None
        allow(request.page, "page_size")
        size = page_by_id(request.page, "ct", _TOKENS_PER_PAGE).size
        if request.offset < 0:
            raise InvalidArgument("offset is at least 0", reason="PAGE_SIZE_INVALID")
        listed, more = await self._credentials.list_tokens(current().organization_id, size, request.offset, agent_id)
        return wire.ListClientTokensResponse(tokens=map(tokens.encode, listed), has_next_page=more)

    async def DeleteClientToken(
        self, request: wire.DeleteClientTokenRequest, context: Any
    ) -> wire.DeleteClientTokenResponse:
        """Deletes a token of the caller's tenant."""
        needs(current(), *_MAKERS)
        await self._credentials.delete_token(current().organization_id, from_public("ct", request.token_id))
        return wire.DeleteClientTokenResponse()

    async def GetWebhookSecret(
        self, request: wire.GetWebhookSecretRequest, context: Any
    ) -> wire.GetWebhookSecretResponse:
        """Returns the secret of the caller's tenant."""
        caller = current()
        needs(caller, "admin")
        secret = secret_of(self._callback_secret, caller.organization_id)
        return wire.GetWebhookSecretResponse(secret=secret.decode())

    async def CreateOrganization(
        self, request: wire.CreateOrganizationRequest, context: Any
    ) -> wire.CreateOrganizationResponse:
        """Creates a tenant; for the operator."""
        organization = await self._tenants.create_organization(
            current(), organization_drafts.draft(request.organization).values
        )
        return wire.CreateOrganizationResponse(organization=organizations.encode(organization))

    async def ListOrganizations(
        self, request: wire.ListOrganizationsRequest, context: Any
    ) -> wire.ListOrganizationsResponse:
        """Returns one page."""
        allow(request.page, "page_size", "page_token", "after")
        page = page_by_id(request.page, "org", _PER_PAGE, ascending=True)
        listed = await self._tenants.organizations(current(), page)
        return wire.ListOrganizationsResponse(
            organizations=map(organizations.encode, listed.items), next_page_token=listed.next_token
        )

    async def UpdateOrganization(
        self, request: wire.UpdateOrganizationRequest, context: Any
    ) -> wire.UpdateOrganizationResponse:
        """Renames a tenant."""
        organization_id = from_public("org", request.organization_id)
        name = new_name(organization_drafts.draft(request.organization, request.update_mask.paths))
        organization = await self._tenants.rename_organization(current(), organization_id, name)
        return wire.UpdateOrganizationResponse(organization=organizations.encode(organization))

    async def DeleteOrganization(
        self, request: wire.DeleteOrganizationRequest, context: Any
    ) -> wire.DeleteOrganizationResponse:
        """Deletes a tenant; for the operator."""
        organization_id = from_public("org", request.organization_id)
        organization = await self._tenants.delete_organization(current(), organization_id)
        return wire.DeleteOrganizationResponse(organization=organizations.encode(organization))

    async def CreateUser(self, request: wire.CreateUserRequest, context: Any) -> wire.CreateUserResponse:
        """Creates a user of the caller's tenant; the operator may name another."""
        user = await self._tenants.create_user(current(), user_drafts.draft(request.user).values)
        return wire.CreateUserResponse(user=users.encode(user))

    async def ListUsers(self, request: wire.ListUsersRequest, context: Any) -> wire.ListUsersResponse:
        """Returns one page."""
        organization_id = optional_id("org", request.organization_id)
        allow(request.page, "page_size", "page_token", "after")
        page = page_by_id(request.page, "user", _PER_PAGE, ascending=True)
        listed = await self._tenants.users(current(), page, organization_id)
        return wire.ListUsersResponse(users=map(users.encode, listed.items), next_page_token=listed.next_token)

    async def UpdateUser(self, request: wire.UpdateUserRequest, context: Any) -> wire.UpdateUserResponse:
        """Renames a user."""
        user_id = from_public("user", request.user_id)
        name = new_name(user_drafts.draft(request.user, request.update_mask.paths))
        user = await self._tenants.rename_user(current(), user_id, name)
        return wire.UpdateUserResponse(user=users.encode(user))

    async def DeleteUser(self, request: wire.DeleteUserRequest, context: Any) -> wire.DeleteUserResponse:
        """Deletes a user and its keys."""
        user = await self._tenants.delete_user(current(), from_public("user", request.user_id))
        return wire.DeleteUserResponse(user=users.encode(user))
