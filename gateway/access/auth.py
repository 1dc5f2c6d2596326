"""Authentication: the credentials of a request become a call context, or a 401."""

import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from gateway.access.authorizer import Authorizer, Grant
from gateway.access.credentials import PREFIXES, Credentials
from gateway.access.origin_check import OriginCheck
from gateway.access.roles import Right, right_of
from gateway.access.run_tokens import acting_context, bearer_of, check_route, has_run_token, run_context
from gateway.git.requests import with_bearer
from gateway.vendors.keys import for_loci
from services.common.context import CallContext, Signer, Verifier, use_context
from services.common.errors import PermissionDenied, Unauthenticated
from services.common.ids import from_public

DEFAULT_ORGANIZATION = UUID("00000000-0000-4000-8000-000000000000")
DEFAULT_USER = UUID("00000000-0000-4000-8000-000000000000")
AUDIENCE = ("agent", "memory", "llm_gateway", "tool_runner")


@dataclass(frozen=True, slots=True)
class Caller:
    """The tenant and the user that a request is made for."""

    # Unsigned; `use_context(..., signer=...)` signs it when the first call needs a token and renews it.
    context: CallContext
    # What vouched for the caller, as sent or by its id; a request with another is another request. Never logged.
    credential: bytes
    # By which requests are counted; None: they are not.
    counted_as: str | None = None
    # None: the setting.
    requests_per_minute: int | None = None
    # None: everything that the context's role may do.
    grant: Grant | None = None


@dataclass(frozen=True, slots=True)
class KeyAuthentication:
    """The collaborators that authenticate keys."""

    credentials: Credentials
    authorizer: Authorizer
    signer: Signer
    # Whether nobody is let in without one.
    required: bool = False


class Authenticator:
    """Keys and client-side tokens; without one the default tenant, behind a password if there is one; and tools.

    keys: None: none are known. verifier: of tools' tokens; None: tools are not let in. origin_check: judges who
    comes where nobody is asked for anything.
    """

    def __init__(
        self,
        password: str,
        verifier: Verifier | None = None,
        keys: KeyAuthentication | None = None,
        origin_check: OriginCheck | None = None,
    ) -> None:
        self._password = password.encode()
        self._verifier = verifier
        self._keys = keys
        self._origin_check = origin_check or OriginCheck()

    async def caller(self, method: str, path: str, headers: Mapping[bytes, bytes], query: bytes = b"") -> Caller:
        """Returns the caller behind a request's headers (names in lower case, as ASGI gives them).

        Raises Unauthenticated (PASSWORD_REQUIRED, CREDENTIAL_INVALID, RUN_TOKEN_INVALID) for a missing or wrong
        password, key or token; PermissionDenied where its role, its policy or a tool may not go (ROLE_NOT_PERMITTED,
        ORIGIN_NOT_ALLOWED, RUN_NOT_PERMITTED); InvalidArgument (INVALID_ID) for a `user_id` header that is no user's
        id; and what looking up a key or its agent raises.
        """
        headers = for_loci(path, headers)
        headers = with_bearer(path, headers)
        if has_run_token(headers):
            context = run_context(headers, self._verifier)
            check_route(method, path)
            await self._check_ceiling(context, method, path, query)
            # Not the token: a call that is made again after a crash has another.
            return Caller(acting_context(context, AUDIENCE), f"run {context.run_id}".encode())
        exempt = right_of(method, path) is Right.OPEN
        if not exempt and (bearer := bearer_of(headers)).startswith(PREFIXES):
            return await self._known(bearer, method, path, headers, query)
        if not exempt and self._keys and self._keys.required:
            raise Unauthenticated("Unauthorized", reason="CREDENTIAL_INVALID")
        if not exempt and self._password and not self._has_password(headers):
            raise Unauthenticated("Unauthorized", reason="PASSWORD_REQUIRED")
        if not exempt and not self._password:
            self._origin_check.check(method, headers)
        named = headers.get(b"user_id")
        user_id = from_public("user", named.decode("latin-1")) if named else DEFAULT_USER
        context = CallContext(DEFAULT_ORGANIZATION, user_id, "admin", AUDIENCE)
        return Caller(context, self._password, None if exempt else "")

    async def _check_ceiling(self, context: CallContext, method: str, path: str, query: bytes) -> None:
        """Raises PermissionDenied where a tool goes further than the credential that its run was begun with."""
        if context.ceiling is None:
            return
        if self._keys is None:
            raise PermissionDenied("keys are not known here", reason="RUN_NOT_PERMITTED")
        with use_context(acting_context(context, AUDIENCE), signer=self._keys.signer):
            await self._keys.authorizer.check_run(context.ceiling, method, path, query)

    async def _known(
        self, bearer: bytes, method: str, path: str, headers: Mapping[bytes, bytes], query: bytes
    ) -> Caller:
        if self._keys is None:
            raise Unauthenticated("Unauthorized", reason="CREDENTIAL_INVALID")
        principal = await self._keys.credentials.known(bearer)
        origin = headers.get(b"origin", b"").decode("latin-1")
        with use_context(principal.context, signer=self._keys.signer):
            await self._keys.authorizer.check(principal.grant, method, path, query, origin)
        limit = principal.requests_per_minute
        return Caller(principal.context, principal.id.encode(), principal.id, limit, principal.grant)

    def _has_password(self, headers: Mapping[bytes, bytes]) -> bool:
        by_bearer = hmac.compare_digest(bearer_of(headers), self._password)
        bare_scheme, _, bare = headers.get(b"x-bare-password", b"").partition(b" ")
        by_bare = bare_scheme.lower() == b"password" and hmac.compare_digest(bare.strip(), self._password)
        return by_bearer or by_bare
