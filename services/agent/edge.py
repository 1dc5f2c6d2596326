"""Authentication of calls from outside: credentials in the metadata become a signed call context, or UNAUTHENTICATED.

A key stands for its tenant, user and role. Without one the password does, or nothing where none is asked for;
`settings.py` sees to it that only this machine can call then.
"""

import hmac
from collections.abc import Sequence
from uuid import UUID

from services.agent.resources.access.model import hash_of, may
from services.agent.resources.access.ports import CredentialStore
from services.common.context import CallContext, Signer
from services.common.core.ceiling import Ceiling
from services.common.errors import PermissionDenied, Unauthenticated
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

    async def authenticate(self, metadata: Sequence[tuple[str, str | bytes]], method: str) -> CallContext:
        """Returns the signed context of the caller behind `metadata`.

        Raises Unauthenticated (PASSWORD_REQUIRED, CREDENTIAL_INVALID), PermissionDenied (ROLE_NOT_PERMITTED).
        """
        credential = _credential(metadata)
        if credential.startswith(_CREDENTIALS):
            return self._signer.signed(await self._identify(credential, method))
        if self._require_key:
            raise Unauthenticated("send the metadata 'authorization: Bearer <API key>'", reason="CREDENTIAL_INVALID")
        if self._password and not hmac.compare_digest(credential, self._password):
            sentence = "send the metadata 'authorization: Bearer <LETTA_SERVER_PASSWORD>', or an API key"
            raise Unauthenticated(sentence, reason="PASSWORD_REQUIRED")
        return self._signer.signed(self._caller)

    async def _identify(self, credential: bytes, method: str) -> CallContext:
        identity = await self._credentials.find(hash_of(credential.decode(errors="replace")))
        if identity is None:
            sentence = "this key or token is not known, or its time is over"
            raise Unauthenticated(sentence, reason="CREDENTIAL_INVALID")
        if identity.agent_ids or not may(identity.role, method):
            limited = " limited to some agents, which is for REST alone," if identity.agent_ids else ""
            sentence = f"a key with the role {identity.role}{limited} may not call {method}"
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
