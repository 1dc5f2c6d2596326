"""Keys, tokens, tenants and users <-> protobuf."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from google.protobuf.message import Message

from loci.agent.v1 import access_service_pb2 as wire
from services.agent.resources.access.model import (
    CLIENT_ROLE,
    TOKEN_LIFE,
    AgentAccess,
    KeyDraft,
    TokenDraft,
    merge_policy,
)
from services.agent.resources.access.ports import ApiKey, ClientToken, Organization, Principal, User
from services.common.codec import Codec
from services.common.errors import InvalidArgument
from services.common.ids import from_public, to_public
from services.common.timestamps import timestamp

_PREFIX = "ROLE_"
_keys = Codec(ApiKey, wire.ApiKey, leave=("role",))
_principals = Codec(Principal, wire.AuthenticateResponse, leave=("id", "token"))
organizations = Codec(Organization, wire.Organization)
users = Codec(User, wire.User)


def key_to_proto(key: ApiKey) -> wire.ApiKey:
    """Returns a key as its tenant sees it."""
    return _keys.encode(key, role=wire.Role.Value(_PREFIX + key.role.upper().replace("-", "_")))


def key_draft(key: wire.ApiKey) -> KeyDraft:
    """Returns a key as asked for. Raises InvalidArgument (INVALID_ID, API_KEY_INVALID, TIME_INVALID)."""
    if key.role not in wire.Role.values():
        raise InvalidArgument(f"{key.role} is no role", reason="API_KEY_INVALID")
    role = wire.Role.Name(key.role or wire.ROLE_DEVELOPER).removeprefix(_PREFIX).lower().replace("_", "-")
    return KeyDraft(
        user_id=from_public("user", key.user_id) if key.user_id else None,
        name=key.name.strip(),
        role=role,
        agent_ids=tuple(dict.fromkeys(from_public("agent", each) for each in key.agent_ids)),
        requests_per_minute=key.requests_per_minute if key.HasField("requests_per_minute") else None,
        expires_at=_moment(key, "expires_at"),
    )


def token_to_proto(token: ClientToken) -> wire.ClientToken:
    """Returns a token as its tenant sees it."""
    policy = [
        wire.AgentAccess(agent_id=to_public("agent", agent_id), access=access) for agent_id, access in token.policy
    ]
    return wire.ClientToken(
        id=to_public("ct", token.id), hostname=token.hostname, policy=policy, expires_at=timestamp(token.expires_at)
    )


def token_draft(request: wire.CreateClientTokenRequest, now: datetime) -> TokenDraft:
    """Returns a token as asked for. Raises InvalidArgument (INVALID_ID, TIME_INVALID)."""
    policy = [AgentAccess(from_public("agent", each.agent_id), tuple(each.access)) for each in request.policy]
    return TokenDraft(request.hostname, merge_policy(policy), _moment(request, "expires_at") or now + TOKEN_LIFE)


def principal_to_proto(principal: Principal) -> wire.AuthenticateResponse:
    """Returns the caller that a credential stands for."""
    return _principals.encode(
        principal,
        credential_id=to_public("ct" if principal.role == CLIENT_ROLE else "key", principal.id),
        client_token=None if principal.token is None else token_to_proto(principal.token),
    )


def changes_name(paths: Sequence[str]) -> bool:
    """Returns whether the name is to change. Raises InvalidArgument (UPDATE_MASK_INVALID)."""
    for path in paths:
        if path != "name":
            raise InvalidArgument(f"{path!r} cannot be updated", reason="UPDATE_MASK_INVALID")
    return bool(paths)


def _moment(message: Message, name: str) -> datetime | None:
    if not message.HasField(name):
        return None
    stamp: Any = getattr(message, name)
    try:
        return stamp.ToDatetime(tzinfo=UTC)  # type: ignore[no-any-return]
    except (ValueError, OverflowError):
        raise InvalidArgument(f"{name} is outside of the years 1 to 9999", reason="TIME_INVALID") from None
