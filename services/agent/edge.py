"""Who calls from outside: credentials in a call's metadata become a signed call context, or UNAUTHENTICATED.

Without a password there is one tenant and no question asked; `settings.py` sees to it that only this machine can call
then.
"""

import hmac
from collections.abc import Sequence
from uuid import UUID

from services.common.context import CallContext, Signer
from services.common.errors import Unauthenticated

DEFAULT_ORGANIZATION = UUID("00000000-0000-4000-8000-000000000000")
DEFAULT_USER = UUID("00000000-0000-4000-8000-000000000000")
# This service, and those that it calls with the caller's own token.
AUDIENCE = ("agent", "memory", "llm_gateway", "tool_runner")


class Edge:
    """Authenticates external calls. `password`: what they must show as `authorization: Bearer ...`; empty: nothing."""

    def __init__(self, password: str, signer: Signer) -> None:
        self._password = password.encode()
        self._signer = signer
        self._caller = CallContext(DEFAULT_ORGANIZATION, DEFAULT_USER, "admin", AUDIENCE)

    async def authenticate(self, metadata: Sequence[tuple[str, str | bytes]]) -> CallContext:
        """The signed context of the caller behind `metadata`. Raises Unauthenticated (PASSWORD_REQUIRED)."""
        if self._password and not self._knows_password(metadata):
            sentence = "send the metadata 'authorization: Bearer <LETTA_SERVER_PASSWORD>'"
            raise Unauthenticated(sentence, reason="PASSWORD_REQUIRED")
        return self._signer.signed(self._caller)

    def _knows_password(self, metadata: Sequence[tuple[str, str | bytes]]) -> bool:
        for name, value in metadata:
            if name == "authorization":
                scheme, _, shown = (value.encode() if isinstance(value, str) else value).partition(b" ")
                return scheme.lower() == b"bearer" and hmac.compare_digest(shown.strip(), self._password)
        return False
