"""The signed call context, which says for whom a call is made, and the current one.

An edge (the gateway, the agent service's external listener) or the agent's worker signs a CallContext with
Ed25519. It travels as gRPC metadata `loci-context-bin`, a serialized loci.common.v1.SignedCallContext. Each
server verifies it (`interceptors.py`) and makes it current for the handler; calls made meanwhile carry the
same token on (`channel.py`). Stores take the tenant from `current()`, never from a request.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import TypeVar
from uuid import UUID

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from google.protobuf.message import DecodeError

from loci.common.v1 import context_pb2
from services.common.ceiling import ceiling_from_proto, ceiling_to_proto
from services.common.core.ceiling import Ceiling
from services.common.errors import Unauthenticated

K = TypeVar("K")
V = TypeVar("V")

METADATA_KEY = "loci-context-bin"
LIFETIME_SECONDS = 300.0
# How the token of a tool's run is told from a password; what follows is base64url of the serialized SignedCallContext.
RUN_TOKEN_PREFIX = "loci-run-"
# Of a context that a tool acts with, and of no other: the gateway lets it do less than its tenant may.
RUN_ROLE = "run"
# Equal contexts signed within this time share a token, so that verifiers find it in their cache.
_SHARED_SECONDS = 60.0
_CACHED_TOKENS = 8_192


@dataclass(frozen=True, slots=True)
class CallContext:
    """The user who acts, the tenant, and the run. Unsigned while `token` is empty."""

    organization_id: UUID
    user_id: UUID
    role: str
    # Names of the services that may accept it.
    audience: tuple[str, ...]
    run_id: UUID | None = None
    # The runs that wait for `run_id`, outermost first.
    ancestors: tuple[UUID, ...] = ()
    # Seconds since the epoch at which the whole chain's work must end.
    deadline: float | None = None
    # The most that may be done here, by whoever acts; None: all of the tenant.
    ceiling: Ceiling | None = None
    # Of the key or token that was shown to an edge, prefixed; empty for none, and in runs.
    credential_id: str = ""
    # Of the run's owner: see the proto.
    fence: int = 0
    # Seconds since the epoch; set by the signer.
    expires_at: float = field(default=0.0, compare=False)
    # The serialized SignedCallContext.
    token: bytes = field(default=b"", compare=False, repr=False)


class Signer:
    """Makes tokens, good for 5 minutes unless said otherwise. Held by edges and by the workers of agent and memory."""

    def __init__(self, private_key: Ed25519PrivateKey, key_id: str) -> None:
        self._private_key = private_key
        self._key_id = key_id
        self._recent: dict[tuple[CallContext, float], CallContext] = {}

    def sign(self, context: CallContext) -> bytes:
        """Returns the token of `context`; see `signed`."""
        return self.signed(context).token

    def signed(self, context: CallContext, *, lifetime: float = LIFETIME_SECONDS) -> CallContext:
        """Returns `context` with its token and expiry, `lifetime` seconds away.

        Equal ones share a token for up to a minute.
        """
        now = time.time()
        key = (context, lifetime)
        recent = self._recent.get(key)
        if recent is not None and recent.expires_at - now > max(lifetime - _SHARED_SECONDS, lifetime / 2):
            return recent
        expires_at = now + lifetime
        body = _encode(context, expires_at)
        token = context_pb2.SignedCallContext(
            context=body, key_id=self._key_id, signature=self._private_key.sign(body)
        ).SerializeToString()
        signed = replace(context, expires_at=expires_at, token=token)
        self._recent.pop(key, None)
        _remember(self._recent, key, signed)
        return signed


@dataclass(frozen=True, slots=True)
class KeyLimit:
    """What a key may vouch for: no run, and this role alone, before these services."""

    role: str
    audience: frozenset[str]

    def permits(self, context: CallContext) -> bool:
        """Returns whether a context stays within."""
        is_within = context.role == self.role and self.audience.issuperset(context.audience)
        return is_within and context.run_id is None and not context.ancestors


class Verifier:
    """Checks tokens against public keys by key id. A token's signature is checked once, then remembered.

    limits: of the keys that may not vouch for everything, by key id.
    """

    def __init__(
        self, public_keys: Mapping[str, Ed25519PublicKey], limits: Mapping[str, KeyLimit] | None = None
    ) -> None:
        self._public_keys = dict(public_keys)
        self._limits = dict(limits or {})
        self._verified: dict[bytes, CallContext] = {}

    def verify(self, token: bytes, audience: str) -> CallContext:
        """Returns the context in `token` if it is genuine, unexpired and made for the service called `audience`.

        Raises Unauthenticated: CONTEXT_INVALID, CONTEXT_EXPIRED, CONTEXT_WRONG_AUDIENCE.
        """
        context = self._verified.get(token)
        if context is None:
            context = self._check(token)
            _remember(self._verified, token, context)
        if context.expires_at <= time.time():
            self._verified.pop(token, None)
            raise Unauthenticated("the call context has expired; sign a new one", reason="CONTEXT_EXPIRED")
        if audience not in context.audience:
            raise Unauthenticated(
                f"the call context was not made for the service {audience!r}",
                reason="CONTEXT_WRONG_AUDIENCE",
                metadata={"audience": audience},
            )
        return context

    def _check(self, token: bytes) -> CallContext:
        try:
            signed = context_pb2.SignedCallContext.FromString(token)
            public_key = self._public_keys[signed.key_id]
            public_key.verify(signed.signature, signed.context)
            context = _decode(signed.context, token)
            if (limit := self._limits.get(signed.key_id)) and not limit.permits(context):
                raise ValueError("this key may not vouch for that")
            return context
        except (DecodeError, KeyError, InvalidSignature, ValueError):
            # One sentence for every cause: a forger learns nothing from it.
            raise Unauthenticated("the call context is not valid", reason="CONTEXT_INVALID") from None


def _remember(cache: dict[K, V], key: K, value: V) -> None:
    if len(cache) >= _CACHED_TOKENS:
        del cache[next(iter(cache))]
    cache[key] = value


def _encode(context: CallContext, expires_at: float) -> bytes:
    message = context_pb2.CallContext(
        organization_id=str(context.organization_id),
        user_id=str(context.user_id),
        role=context.role,
        audience=context.audience,
        run_id="" if context.run_id is None else str(context.run_id),
        ancestor_run_ids=[str(run_id) for run_id in context.ancestors],
        credential_id=context.credential_id,
        fence=context.fence,
    )
    message.expire_time.FromMicroseconds(round(expires_at * 1e6))
    if context.deadline is not None:
        message.deadline.FromMicroseconds(round(context.deadline * 1e6))
    if context.ceiling is not None:
        message.ceiling.CopyFrom(ceiling_to_proto(context.ceiling))
    return message.SerializeToString()


def _decode(body: bytes, token: bytes) -> CallContext:
    message = context_pb2.CallContext.FromString(body)
    return CallContext(
        organization_id=UUID(message.organization_id),
        user_id=UUID(message.user_id),
        role=message.role,
        audience=tuple(message.audience),
        run_id=UUID(message.run_id) if message.run_id else None,
        ancestors=tuple(UUID(run_id) for run_id in message.ancestor_run_ids),
        deadline=message.deadline.ToMicroseconds() / 1e6 if message.HasField("deadline") else None,
        ceiling=ceiling_from_proto(message.ceiling) if message.HasField("ceiling") else None,
        credential_id=message.credential_id,
        fence=message.fence,
        expires_at=message.expire_time.ToMicroseconds() / 1e6,
        token=token,
    )


@dataclass(slots=True)
class _Scope:
    context: CallContext
    # Of this call, on time.monotonic()'s clock.
    deadline: float | None
    signer: Signer | None


_scope: ContextVar[_Scope | None] = ContextVar("loci_call", default=None)


def current() -> CallContext:
    """Returns the verified context of the call being served; outside of one, Unauthenticated (CONTEXT_MISSING)."""
    context = current_or_none()
    if context is None:
        raise Unauthenticated("there is no call context", reason="CONTEXT_MISSING")
    return context


def current_or_none() -> CallContext | None:
    """Returns as `current`, but None outside of a call: for logs and spans."""
    scope = _scope.get()
    return None if scope is None else scope.context


def current_token() -> bytes:
    """Returns the token that outgoing calls carry, renewed where `use_context` got a signer; empty without a call."""
    scope = _scope.get()
    if scope is None:
        return b""
    if scope.signer is not None and scope.context.expires_at - time.time() < _SHARED_SECONDS:
        scope.context = scope.signer.signed(scope.context)
    return scope.context.token


def time_remaining() -> float | None:
    """Returns seconds left for the call being served, or for its chain of runs if that ends sooner; None: no end."""
    scope = _scope.get()
    if scope is None:
        return None
    spans = []
    if scope.deadline is not None:
        spans.append(scope.deadline - time.monotonic())
    if scope.context.deadline is not None:
        spans.append(scope.context.deadline - time.time())
    return max(0.0, min(spans)) if spans else None


def enter_call(context: CallContext, seconds: float | None) -> None:
    """Makes `context` current for the rest of this asyncio task, which `seconds` bounds. For interceptors."""
    deadline = None if seconds is None else time.monotonic() + seconds
    _scope.set(_Scope(context, deadline, None))


@contextmanager
def use_context(context: CallContext, *, signer: Signer | None = None) -> Iterator[CallContext]:
    """Makes `context` current in this block, for work that no call bounds: background workers, edges.

    The deadline of a call being served is left behind; only `context.deadline` holds. A task that shall
    outlive the call that starts it is created inside such a block. With `signer`, `context` may be unsigned,
    and its token is renewed whenever less than a minute of it is left, so that a block may last for hours.
    """
    scope = _Scope(context, None, signer)
    reset = _scope.set(scope)
    try:
        yield context
    finally:
        # An async generator may be closed by another task, where there is nothing to take back.
        if _scope.get() is scope:
            _scope.reset(reset)


@contextmanager
def run_independent() -> Iterator[None]:
    """Makes the current context current without its run, where it is signed here: for calls whose peer asks for none.

    Runs then share their caller's token, which the peer has verified before; one of their own costs 0.2 ms to verify.
    """
    scope = _scope.get()
    if scope is None or scope.signer is None or scope.context.run_id is None:
        yield
        return
    context = replace(scope.context, run_id=None, ancestors=(), fence=0, expires_at=0.0, token=b"")
    with use_context(context, signer=scope.signer):
        yield
