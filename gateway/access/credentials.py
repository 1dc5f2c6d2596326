"""Keys and client-side tokens: whom each stands for, as the agent service says, remembered for a few seconds."""

import hashlib
import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar
from uuid import UUID

from gateway.access.authorizer import Grant
from gateway.access.roles import ACCESS, CLIENT, MAY
from gateway.access.run_tokens import has_run_token
from gateway.peers import Peers
from loci.agent.v1 import access_service_pb2 as wire
from services.common.context import CallContext, Signer, use_context
from services.common.errors import Unauthenticated
from services.common.ids import from_public

K = TypeVar("K")
V = TypeVar("V")

PREFIXES = (b"loci-key-", b"loci-ct-")
# Headers with which a caller can guess; the query's token of a socket has become the first of them.
_GUESSABLE = (b"authorization", b"x-bare-password", b"x-api-key")
_NOBODY = UUID(int=0)
_MOST_KNOWN = 10_000


def shown(headers: Mapping[bytes, bytes]) -> tuple[bytes | None, ...] | None:
    """Returns what a caller shows that could be a guess; None for nothing, and for tokens of runs, which are signed."""
    found = tuple(map(headers.get, _GUESSABLE))
    return found if any(found) and not has_run_token(headers) else None


@dataclass(frozen=True, slots=True)
class Principal:
    """The user, role and limits that a credential stands for."""

    # Unsigned.
    context: CallContext
    # Of which key or token: prefixed `key-` or `ct-`.
    id: str
    grant: Grant
    # None: the gateway's setting.
    requests_per_minute: int | None
    # Seconds since the epoch.
    ends_at: float


class Credentials:
    """Remembers answers, good ones and bad ones, for `seconds`; a revoked key is refused after at most so long."""

    def __init__(self, peers: Peers, signer: Signer, seconds: float, audience: tuple[str, ...]) -> None:
        self._peers = peers
        self._signer = signer
        self._seconds = seconds
        self._audience = audience
        self._good: OrderedDict[bytes, tuple[float, Principal]] = OrderedDict()
        # Apart, so that whoever tries thousands of keys does not push out those that are known.
        self._bad: OrderedDict[bytes, float] = OrderedDict()

    async def known(self, bearer: bytes) -> Principal:
        """Raises Unauthenticated (CREDENTIAL_INVALID), and Unavailable where nobody can be asked."""
        digest, now = hashlib.sha256(bearer).digest(), time.monotonic()
        until, principal = self._good.get(digest, (0.0, None))
        if principal is None or until <= now:
            if self._bad.get(digest, 0.0) > now:
                raise _unknown()
            principal = await self._ask(digest, now + self._seconds)
        if principal.ends_at <= time.time():
            raise _unknown()
        return principal

    async def _ask(self, digest: bytes, until: float) -> Principal:
        # From before the question on: what is revoked meanwhile is known no longer than said.
        edge = CallContext(_NOBODY, _NOBODY, "edge", ("agent",))
        request = wire.AuthenticateRequest(credential_hash=digest)
        try:
            with use_context(edge, signer=self._signer):
                response = await self._peers.call(self._peers.access.Authenticate, request)
        except Unauthenticated as error:
            self._good.pop(digest, None)
            if error.reason != "CREDENTIAL_INVALID":
                raise
            _remember(self._bad, digest, until)
            raise _unknown() from None
        principal = self._read(response)
        _remember(self._good, digest, (until, principal))
        return principal

    def _read(self, response: wire.AuthenticateResponse) -> Principal:
        grant = _grant(response)
        context = CallContext(
            from_public("org", response.organization_id),
            from_public("user", response.user_id),
            response.role,
            self._audience,
            ceiling=grant.ceiling,
            credential_id=response.credential_id,
        )
        limit = response.requests_per_minute if response.HasField("requests_per_minute") else None
        ends_at = response.expires_at.ToNanoseconds() / 1e9 if response.HasField("expires_at") else float("inf")
        return Principal(context, response.credential_id, grant, limit, ends_at)


def _grant(response: wire.AuthenticateResponse) -> Grant:
    if response.role == CLIENT:
        token = response.client_token
        policy = {each.agent_id: frozenset(ACCESS[name] for name in each.access) for each in token.policy}
        return Grant(CLIENT, policy, token.hostname)
    if response.agent_ids:
        return Grant(response.role, dict.fromkeys(response.agent_ids, MAY.get(response.role, frozenset())))
    return Grant(response.role)


def _remember(cache: OrderedDict[K, V], key: K, value: V) -> None:
    cache.pop(key, None)
    while len(cache) >= _MOST_KNOWN:
        cache.popitem(last=False)
    cache[key] = value


def _unknown() -> Unauthenticated:
    return Unauthenticated("this key or token is not known, or its time is over", reason="CREDENTIAL_INVALID")
