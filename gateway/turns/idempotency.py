"""How a repeated request is recognised: the gateway says what it sees, the agent service judges.

The SDKs time out after a minute and repeat twice, without any key but a count; so a request is also known by
what it is.
"""

import hashlib
from collections.abc import Mapping

from starlette.requests import Request

from gateway.rest.services import caller_of
from loci.agent.v1 import message_service_pb2

_RETRIES = b"x-stainless-retry-count"


def is_retry(request: Request) -> bool:
    """Returns whether the SDK says that it repeats this request."""
    return _count(dict(request.scope["headers"]).get(_RETRIES, b"")) >= 1


async def retry_of(request: Request) -> message_service_pb2.Retry:
    """Returns the keys of a request that is being served."""
    caller = caller_of(request)
    return retry_keys(
        dict(request.scope["headers"]),
        credential=caller.credential,
        user_id=str(caller.context.user_id),
        method=request.method,
        path=request.scope["path"],
        body=await request.body(),
    )


def retry_keys(
    headers: Mapping[bytes, bytes], *, credential: bytes, user_id: str, method: str, path: str, body: bytes
) -> message_service_pb2.Retry:
    """Returns the keys of one HTTP request; header names in lower case, `path` in its canonical form."""
    return message_service_pb2.Retry(
        idempotency_key=headers.get(b"idempotency-key", b"").decode("latin-1"),
        request_hash=request_hash(credential, user_id, method, path, body),
        is_retry=_count(headers.get(_RETRIES, b"")) >= 1,
    )


def request_hash(credential: bytes, user_id: str, method: str, path: str, body: bytes) -> bytes:
    """Returns the SHA-256 over who asks, the route and the body."""
    digest = hashlib.sha256()
    for part in (credential, user_id.encode(), method.encode(), path.encode(errors="surrogatepass")):
        # With its length, so that no two requests run together to the same bytes.
        digest.update(len(part).to_bytes(4, "big") + part)
    digest.update(body)
    return digest.digest()


def _count(header: bytes) -> int:
    return int(header) if header.isdigit() else 0
