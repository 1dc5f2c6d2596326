"""Keys, tokens and names of tenants, their rules, and how secrets are made. Pure, but for chance."""

import hashlib
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple
from urllib.parse import urlsplit
from uuid import UUID

from services.common.core.refusals import Refused

ROLES = ("admin", "developer", "agent-only", "read-only")
CLIENT_ROLE = "client"
ACCESS = ("read_messages", "write_messages", "read_agent", "write_agent")
TOKEN_LIFE = timedelta(minutes=5)
_LONGEST_NAME = 256
_LONGEST_HOSTNAME = 2_048
_MOST_AGENTS = 100
_MOST_PER_MINUTE = 1_000_000
_HINT = len("loci-key-") + 4
_SECRET_BYTES = 32


class AgentAccess(NamedTuple):
    """The rights of a token over one agent: some of ACCESS."""

    agent_id: UUID
    access: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class KeyDraft:
    """A key as asked for. user_id: None for the caller."""

    user_id: UUID | None
    name: str
    role: str
    agent_ids: tuple[UUID, ...]
    requests_per_minute: int | None
    expires_at: datetime | None


@dataclass(frozen=True, slots=True)
class TokenDraft:
    """A token as asked for."""

    hostname: str
    policy: tuple[AgentAccess, ...]
    expires_at: datetime


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
    """Raises Refused with `reason`."""
    if not 1 <= len(name.strip()) <= _LONGEST_NAME or "\0" in name:
        raise Refused(reason, f"a name has 1 to {_LONGEST_NAME} characters")
    return name.strip()


def check_key(draft: KeyDraft, now: datetime) -> None:
    """Raises Refused (API_KEY_INVALID)."""
    check_name(draft.name, "API_KEY_INVALID")
    if draft.agent_ids and draft.role != "agent-only":
        raise _bad_key(f"a key with the role {draft.role} reaches all agents: leave agent_ids out, or use agent-only")
    if len(draft.agent_ids) > _MOST_AGENTS:
        raise _bad_key(f"a key names at most {_MOST_AGENTS} agents")
    if draft.requests_per_minute is not None and not 1 <= draft.requests_per_minute <= _MOST_PER_MINUTE:
        raise _bad_key(f"requests_per_minute is 1 to {_MOST_PER_MINUTE}")
    if draft.expires_at is not None and draft.expires_at <= now:
        raise _bad_key("expires_at is over already")


def check_token(draft: TokenDraft, now: datetime) -> None:
    """Raises Refused (CLIENT_TOKEN_INVALID)."""
    if not _is_page(draft.hostname):
        raise _bad_token("hostname is the address of a page, with its scheme: for example https://app.example.com")
    if not 1 <= len(draft.policy) <= _MOST_AGENTS:
        raise _bad_token(f"a policy names 1 to {_MOST_AGENTS} agents")
    for _, access in draft.policy:
        if not access or not set(access) <= set(ACCESS):
            raise _bad_token(f"access is at least one of {', '.join(ACCESS)}")
    if draft.expires_at <= now:
        raise _bad_token("expires_at is over already")


def merge_policy(policy: Sequence[AgentAccess]) -> tuple[AgentAccess, ...]:
    """Returns each agent and each kind of access once, in the order given."""
    by_agent: dict[UUID, dict[str, None]] = {}
    for agent_id, access in policy:
        by_agent.setdefault(agent_id, {}).update(dict.fromkeys(access))
    return tuple(AgentAccess(agent_id, tuple(access)) for agent_id, access in by_agent.items())


def _is_page(hostname: str) -> bool:
    if len(hostname) > _LONGEST_HOSTNAME or not hostname.isprintable():
        return False
    try:
        parts = urlsplit(hostname)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _bad_key(message: str) -> Refused:
    return Refused("API_KEY_INVALID", message)


def _bad_token(message: str) -> Refused:
    return Refused("CLIENT_TOKEN_INVALID", message)


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
