"""Authentication of calls from outside: credentials in the metadata become a signed call context, or UNAUTHENTICATED.

A key stands for its tenant, user and role. Without one the password does, or nothing where none is asked for;
`settings.py` sees to it that only this machine can call then.
"""

import hmac
from collections.abc import Sequence
from urllib.parse import unquote
from uuid import UUID

from services.agent.resources.access.model import hash_of, may
from services.agent.resources.access.ports import CredentialStore
from services.common.context import CallContext, Signer
from services.common.core.ceiling import Ceiling
from services.common.errors import PermissionDenied, Unauthenticated
from services.common.guesses import Guesses, network_of
from services.common.ids import to_public

DEFAULT_ORGANIZATION = UUID("00000000-0000-4000-8000-000000000000")
DEFAULT_USER = UUID("00000000-0000-4000-8000-000000000000")
# This service, and those that it calls with the caller's own token.
AUDIENCE = ("agent", "memory", "llm_gateway", "tool_runner")
_CREDENTIALS = (b"loci-key-", b"loci-ct-")


class Edge:
    """Authenticates external calls, each for one RPC.

    password: what they must show as `authorization: Bearer ...` where they show no key; empty: nothing.
    require_key: nobody is let in without a key.
    """

    def __init__(
        self, password: str, signer: Signer, credentials: CredentialStore, *, require_key: bool = False
    ) -> None:
        self._password = password.encode()
        self._signer = signer
        self._credentials = credentials
        self._require_key = require_key
        self._caller = CallContext(DEFAULT_ORGANIZATION, DEFAULT_USER, "admin", AUDIENCE)
        self._guesses = Guesses()

    async def authenticate(self, metadata: Sequence[tuple[str, str | bytes]], method: str, peer: str) -> CallContext:
        """Returns the signed context of the caller behind `metadata`, who calls from `peer` (as gRPC writes it).

        Raises Unauthenticated (PASSWORD_REQUIRED, CREDENTIAL_INVALID), PermissionDenied (ROLE_NOT_PERMITTED),
        ResourceExhausted (GUESSES_RATE_LIMITED).
        """
        credential = _credential(metadata)
        address, guess = network_of(_host(peer)), credential or None
        self._guesses.check(address, guess)
        try:
            caller = await self._caller_of(credential, method)
        except Unauthenticated:
            self._guesses.wrong(address, guess)
            raise
        if self._password or caller is not self._caller:
            self._guesses.right(address, guess)
        return self._signer.signed(caller)

    async def _caller_of(self, credential: bytes, method: str) -> CallContext:
        if credential.startswith(_CREDENTIALS):
            return await self._identify(credential, method)
        if self._require_key:
            raise Unauthenticated("send the metadata 'authorization: Bearer <API key>'", reason="CREDENTIAL_INVALID")
        if self._password and not hmac.compare_digest(credential, self._password):
            sentence = "send the metadata 'authorization: Bearer <LETTA_SERVER_PASSWORD>', or an API key"
            raise Unauthenticated(sentence, reason="PASSWORD_REQUIRED")
        return self._caller

    async def _identify(self, credential: bytes, method: str) -> CallContext:
        identity = await self._credentials.find(hash_of(credential.decode(errors="replace")))
        if identity is None:
            sentence = "this key or token is not known, or its time is over"
            raise Unauthenticated(sentence, reason="CREDENTIAL_INVALID")
        if identity.agent_ids or not may(identity.role, method):
            limited = " limited to some agents, which is for REST alone," if identity.agent_ids else ""
            sentence = (
                f"a key with the role {identity.role}{limited} may not call {method}; ask an admin for one that may"
            )
            raise PermissionDenied(sentence, reason="ROLE_NOT_PERMITTED")
        limit = None if identity.role == "admin" else Ceiling(identity.role)
        return CallContext(
            identity.organization_id,
            identity.user_id,
            identity.role,
            AUDIENCE,
            ceiling=limit,
            credential_id=to_public("key", identity.id),
        )


def _credential(metadata: Sequence[tuple[str, str | bytes]]) -> bytes:
    for name, value in metadata:
        if name == "authorization":
            scheme, _, credential = (value.encode() if isinstance(value, str) else value).partition(b" ")
            return credential.strip() if scheme.lower() == b"bearer" else b""
    return b""


def _host(peer: str) -> str:
    """Returns the address in "ipv4:192.0.2.1:50000" or "ipv6:%5B::1%5D:50000"; "" for sockets of this machine."""
    family, _, place = peer.partition(":")
    return unquote(place).rpartition(":")[0].strip("[]") if family in ("ipv4", "ipv6") else ""
