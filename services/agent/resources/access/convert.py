"""Keys, tokens, tenants and users <-> protobuf."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from loci.agent.v1 import access_service_pb2 as wire
from services.agent.resources.access.model import CLIENT_ROLE, TOKEN_LIFE, AgentAccess, KeyDraft, TokenDraft, merged
from services.agent.resources.access.ports import ApiKey, ClientToken, Known, Organization, User
from services.common.errors import InvalidArgument
from services.common.ids import from_public, to_public
from services.common.timestamps import timestamp

_PREFIX = "ROLE_"


def key_to_proto(key: ApiKey) -> wire.ApiKey:
    """A key as its tenant sees it."""
    return wire.ApiKey(
        id=to_public("key", key.id),
        user_id=to_public("user", key.user_id),
        name=key.name,
        hint=key.hint,
        role=wire.Role.Value(_PREFIX + key.role.upper().replace("-", "_")),
        agent_ids=_agents(key.agent_ids),
        requests_per_minute=key.requests_per_minute,
        created_at=timestamp(key.created_at),
        expires_at=_stamp(key.expires_at),
        last_used_at=_stamp(key.last_used_at),
    )


def key_draft(key: wire.ApiKey) -> KeyDraft:
    """A key as asked for. Raises InvalidArgument (INVALID_ID, API_KEY_INVALID, TIME_INVALID)."""
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
    """A token as its tenant sees it."""
    policy = [
        wire.AgentAccess(agent_id=to_public("agent", agent_id), access=access) for agent_id, access in token.policy
    ]
    return wire.ClientToken(
        id=to_public("ct", token.id), hostname=token.hostname, policy=policy, expires_at=timestamp(token.expires_at)
    )


def token_draft(request: wire.CreateClientTokenRequest, now: datetime) -> TokenDraft:
    """A token as asked for. Raises InvalidArgument (INVALID_ID, TIME_INVALID)."""
    policy = merged([AgentAccess(from_public("agent", each.agent_id), tuple(each.access)) for each in request.policy])
    return TokenDraft(request.hostname, policy, _moment(request, "expires_at") or now + TOKEN_LIFE)


def known_to_proto(known: Known) -> wire.AuthenticateResponse:
    """Whom a credential stands for."""
    return wire.AuthenticateResponse(
        organization_id=to_public("org", known.organization_id),
        user_id=to_public("user", known.user_id),
        role=known.role,
        credential_id=to_public("ct" if known.role == CLIENT_ROLE else "key", known.id),
        agent_ids=_agents(known.agent_ids),
        requests_per_minute=known.requests_per_minute,
        client_token=None if known.token is None else token_to_proto(known.token),
        expires_at=_stamp(known.expires_at),
    )


def organization_to_proto(organization: Organization) -> wire.Organization:
    """A tenant."""
    return wire.Organization(
        id=to_public("org", organization.id),
        name=organization.name,
        created_at=timestamp(organization.created_at),
    )


def user_to_proto(user: User) -> wire.User:
    """A user."""
    return wire.User(
        id=to_public("user", user.id),
        organization_id=to_public("org", user.organization_id),
        name=user.name,
        created_at=timestamp(user.created_at),
    )


def checked_mask(paths: Sequence[str]) -> bool:
    """Whether the name is to change. Raises InvalidArgument (UPDATE_MASK_INVALID)."""
    for path in paths:
        if path != "name":
            raise InvalidArgument(f"{path!r} cannot be updated", reason="UPDATE_MASK_INVALID")
    return bool(paths)


def _agents(agent_ids: Sequence[UUID]) -> list[str]:
    return [to_public("agent", agent_id) for agent_id in agent_ids]


def _stamp(time: datetime | None) -> Timestamp | None:
    return None if time is None else timestamp(time)


def _moment(message: Message, name: str) -> datetime | None:
    if not message.HasField(name):
        return None
    stamp: Any = getattr(message, name)
    try:
        return stamp.ToDatetime(tzinfo=UTC)  # type: ignore[no-any-return]
    except (ValueError, OverflowError):
        raise InvalidArgument(f"{name} is outside of the years 1 to 9999", reason="TIME_INVALID") from None
