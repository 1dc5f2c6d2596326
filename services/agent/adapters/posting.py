"""One callback over HTTP."""

import asyncio
from collections.abc import Mapping

import httpx

from services.agent.resources.callbacks.ports import PostFailed
from services.common.safe_http import safe_client

# For the whole exchange; well below the lease of an order.
TIMEOUT_SECONDS = 15.0


async def post(url: str, body: bytes, headers: Mapping[str, str], *, allow_private: bool) -> int:
    """Returns the status that was answered. Raises PostFailed."""
    try:
        async with (
            asyncio.timeout(TIMEOUT_SECONDS),
            # Each has a connection of its own: callbacks are few, and their hosts many.
            safe_client(allow_private=allow_private, timeout=TIMEOUT_SECONDS) as client,
            # Nobody reads what is answered, however long it is.
            client.stream("POST", url, content=body, headers=dict(headers)) as response,
        ):
            return response.status_code
    except (TimeoutError, httpx.TimeoutException):
        raise PostFailed(f"the callback was not answered within {TIMEOUT_SECONDS:g} s") from None
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise PostFailed(f"the callback could not be made: {error or type(error).__name__}"[:500]) from None
