"""Keys, tokens and names of tenants, their rules, and how secrets are made. Pure, but for chance."""

import hashlib
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from urllib.parse import urlsplit
from uuid import UUID

from services.common.core.refusals import Refused

CLIENT_ROLE = "client"
ACCESS = ("read_messages", "write_messages", "read_agent", "write_agent")
TOKEN_LIFE = timedelta(minutes=5)
# What a page holds is not safe for long: its server makes the next one in time.
LONGEST_TOKEN_LIFE = timedelta(days=7)
_HINT = len("loci-key-") + 4
_SECRET_BYTES = 32


@dataclass(frozen=True, slots=True)
class AgentAccess:
    """The rights of a token over one agent: some of ACCESS."""

    agent_id: UUID
    access: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKeySettings:
    """All that a client sets; see loci.agent.v1.ApiKey. user_id: None for the caller."""

    user_id: UUID | None = None
    name: str = ""
    role: str = "developer"
    agent_ids: tuple[UUID, ...] = ()
    requests_per_minute: int | None = None
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey(ApiKeySettings):
    """A key as stored, without its secret."""

    id: UUID
    hint: str
    created_at: datetime
    last_used_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientTokenSettings:
    """All that a client sets; see loci.agent.v1.ClientToken. expires_at: None for TOKEN_LIFE from now."""

    hostname: str = ""
    policy: tuple[AgentAccess, ...] = ()
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientToken(ClientTokenSettings):
    """A token as stored, without its secret."""

    id: UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """The caller that a credential stands for. `token`: of the role "client" alone."""

    organization_id: UUID
    user_id: UUID
    role: str
    id: UUID
    agent_ids: tuple[UUID, ...] = ()
    requests_per_minute: int | None = None
    expires_at: datetime | None = None
    token: ClientToken | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OrganizationSettings:
    """All that a client sets; see loci.agent.v1.Organization."""

    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Organization(OrganizationSettings):
    """A tenant as stored."""

    id: UUID
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class UserSettings:
    """All that a client sets; see loci.agent.v1.User. organization_id: None for the caller's."""

    organization_id: UUID | None = None
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class User(UserSettings):
    """A user as stored."""

    organization_id: UUID
    id: UUID
    created_at: datetime


def new_key() -> str:
    """Returns the secret of a new key: 256 random bits after its prefix."""
    return f"loci-key-{secrets.token_urlsafe(_SECRET_BYTES)}"


def new_token(token_id: UUID) -> str:
    """Returns the secret of a new token: its id, which is public, and 256 random bits."""
    return f"loci-ct-{token_id}-{secrets.token_urlsafe(_SECRET_BYTES)}"


def hash_of(secret: str) -> bytes:
    """Returns the hash by which a credential is found. So much chance needs no salt, and no slow hash."""
    return hashlib.sha256(secret.encode()).digest()


def hint_of(secret: str) -> str:
    """Returns how a key begins, for people who have many."""
    return secret[:_HINT]


def check_name(name: str, reason: str) -> str:
    """Returns the name without blanks around it. Raises Refused with `reason` where nothing is left."""
    if not name.strip():
        raise Refused(reason, "name must not be blank")
    return name.strip()


def check_key(key: ApiKeySettings, now: datetime) -> ApiKeySettings:
    """Returns the settings of a new key, its name stripped. Raises Refused (API_KEY_INVALID)."""
    if key.agent_ids and key.role != "agent-only":
        raise invalid_key("agent_ids", f"must be empty: a key with the role {key.role} reaches all; or use agent-only")
    if key.expires_at is not None and key.expires_at <= now:
        raise invalid_key("expires_at", "is over already")
    return replace(key, name=check_name(key.name, "API_KEY_INVALID"))


def check_token(token: ClientTokenSettings, now: datetime) -> ClientTokenSettings:
    """Returns the settings of a new token, each agent once, with its end. Raises Refused (CLIENT_TOKEN_INVALID)."""
    if not _is_page(token.hostname):
        example = "for example https://app.example.com"
        raise invalid_token("hostname", f"must be the address of a page, with its scheme: {example}")
    for each in token.policy:
        if not each.access or not set(each.access) <= set(ACCESS):
            raise invalid_token("access", f"must be at least one of {', '.join(ACCESS)}")
    expires_at = token.expires_at or now + TOKEN_LIFE
    if expires_at <= now:
        raise invalid_token("expires_at", "is over already")
    if expires_at > now + LONGEST_TOKEN_LIFE:
        raise invalid_token("expires_at", f"must be within {LONGEST_TOKEN_LIFE.days} days; make the next one in time")
    return replace(token, policy=merge_policy(token.policy), expires_at=expires_at)


def merge_policy(policy: Sequence[AgentAccess]) -> tuple[AgentAccess, ...]:
    """Returns each agent and each kind of access once, in the order given."""
    by_agent: dict[UUID, dict[str, None]] = {}
    for each in policy:
        by_agent.setdefault(each.agent_id, {}).update(dict.fromkeys(each.access))
    return tuple(AgentAccess(agent_id, tuple(access)) for agent_id, access in by_agent.items())


def _is_page(hostname: str) -> bool:
    if not hostname.isprintable():
        return False
    try:
        parts = urlsplit(hostname)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def invalid_key(name: str, problem: str) -> Refused:
    """Returns a refusal that names a field of a key."""
    return Refused("API_KEY_INVALID", f"{name} {problem}")


def invalid_token(name: str, problem: str) -> Refused:
    """Returns a refusal that names a field of a token."""
    return Refused("CLIENT_TOKEN_INVALID", f"{name} {problem}")


def invalid_organization(name: str, problem: str) -> Refused:
    """Returns a refusal that names a field of an organization."""
    return Refused("ORGANIZATION_INVALID", f"{name} {problem}")


def invalid_user(name: str, problem: str) -> Refused:
    """Returns a refusal that names a field of a user."""
    return Refused("USER_INVALID", f"{name} {problem}")


READ, TALK, WRITE, OWN = "read", "talk", "write", "own"
_MAY: Mapping[str, frozenset[str]] = {
    "admin": frozenset({READ, TALK, WRITE, OWN}),
    "developer": frozenset({READ, TALK, WRITE}),
    "agent-only": frozenset({READ, TALK}),
    "read-only": frozenset({READ}),
}
_TALKING = frozenset({"SendMessages", "StreamMessages", "StartMessages", "CancelRuns", "CreateConversation"})
_READING = ("Get", "List", "Search", "StreamRun")
_TOKENS = frozenset({"CreateClientToken", "ListClientTokens", "DeleteClientToken"})


def right_of(method: str) -> str:
    """Returns the right that an RPC needs; `method` as gRPC writes it: "/loci.agent.v1.AgentService/GetAgent".

    What is not known to be less is WRITE: a new RPC is closed to the lesser roles.
    """
    service, _, name = method.rpartition("/")
    if service.endswith(".AccessService"):
        return WRITE if name in _TOKENS else OWN
    if name in _TALKING:
        return TALK
    return READ if name.startswith(_READING) else WRITE


def may(role: str, method: str) -> bool:
    """Returns whether a role may call an RPC. Roles that are not in the table may call none."""
    return right_of(method) in _MAY.get(role, frozenset())
