"""Who is calling: credentials of a request become a call context, or a 401."""

import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from services.common.context import CallContext
from services.common.errors import Unauthenticated
from services.common.ids import from_public

DEFAULT_ORGANIZATION = UUID("00000000-0000-4000-8000-000000000000")
DEFAULT_USER = UUID("00000000-0000-4000-8000-000000000000")
AUDIENCE = ("agent", "memory", "llm_gateway", "tool_runner")
# Liveness probes carry no password.
EXEMPT_PATHS = frozenset({"/v1/health"})


@dataclass(frozen=True, slots=True)
class Caller:
    """Who a request is made for."""

    # Unsigned; `use_context(..., signer=...)` signs it when the first call needs a token and renews it.
    context: CallContext
    # What vouched for the caller, as sent; a request with another credential is another request. Never logged.
    credential: bytes


class Authenticator:
    """One tenant without keys, or behind one password. API keys with tenants and roles come in here."""

    def __init__(self, password: str) -> None:
        self._password = password.encode()

    def caller(self, path: str, headers: Mapping[bytes, bytes]) -> Caller:
        """The caller behind a request's headers (names in lower case, as ASGI gives them).

        Raises Unauthenticated (PASSWORD_REQUIRED) for a missing or wrong password, InvalidArgument (INVALID_ID) for a
        `user_id` header that is no user's id.
        """
        if self._password and path not in EXEMPT_PATHS and not self._knows_password(headers):
            raise Unauthenticated("Unauthorized", reason="PASSWORD_REQUIRED")
        named = headers.get(b"user_id")
        user_id = from_public("user", named.decode("latin-1")) if named else DEFAULT_USER
        return Caller(CallContext(DEFAULT_ORGANIZATION, user_id, "admin", AUDIENCE), self._password)

    def _knows_password(self, headers: Mapping[bytes, bytes]) -> bool:
        scheme, _, bearer = headers.get(b"authorization", b"").partition(b" ")
        bare_scheme, _, bare = headers.get(b"x-bare-password", b"").partition(b" ")
        by_bearer = scheme.lower() == b"bearer" and hmac.compare_digest(bearer.strip(), self._password)
        by_bare = bare_scheme.lower() == b"password" and hmac.compare_digest(bare.strip(), self._password)
        return by_bearer or by_bare
