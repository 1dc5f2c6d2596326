"""Keys, tokens, tenants and users <-> protobuf."""

from typing import Any

from loci.agent.v1 import access_service_pb2 as wire
from services.agent.resources.access.model import (
    CLIENT_ROLE,
    ApiKey,
    ApiKeySettings,
    ClientToken,
    ClientTokenSettings,
    Organization,
    OrganizationSettings,
    Principal,
    User,
    UserSettings,
    invalid_key,
    invalid_organization,
    invalid_token,
    invalid_user,
)
from services.common.codec import Codec
from services.common.core.drafts import Draft
from services.common.errors import InvalidArgument
from services.common.ids import to_public

keys = Codec(ApiKey, wire.ApiKey)
key_drafts = Codec(ApiKeySettings, wire.ApiKey, refuse=invalid_key)
tokens = Codec(ClientToken, wire.ClientToken)
token_drafts = Codec(ClientTokenSettings, wire.ClientToken, refuse=invalid_token)
organizations = Codec(Organization, wire.Organization)
organization_drafts = Codec(OrganizationSettings, wire.Organization, refuse=invalid_organization)
users = Codec(User, wire.User)
user_drafts = Codec(UserSettings, wire.User, refuse=invalid_user)
_principals = Codec(Principal, wire.AuthenticateResponse, leave=("id", "token"))


def principal_to_proto(principal: Principal) -> wire.AuthenticateResponse:
    """Returns the caller that a credential stands for."""
    return _principals.encode(
        principal,
        credential_id=to_public("ct" if principal.role == CLIENT_ROLE else "key", principal.id),
        client_token=None if principal.token is None else tokens.encode(principal.token),
    )


def new_name(draft: Draft[Any]) -> str:
    """Returns the name that a change sets. Raises InvalidArgument (UPDATE_MASK_INVALID) where it sets none."""
    if not draft.names:
        raise InvalidArgument("the update mask is empty; name `name`", reason="UPDATE_MASK_INVALID")
    return str(draft.values.name)
