"""Callbacks over HTTP, and what became of them in Postgres."""

import asyncio
from collections.abc import Mapping
from uuid import UUID

import asyncpg
import httpx

from services.agent.admin.ports_runs import NotPosted
from services.common.errors import InvalidArgument
from services.common.outward import Refused, check_url, outward_client

# For the whole exchange; well below the lease of an order.
TIMEOUT_SECONDS = 15.0

# $3 status code, $4 error
_NOTE = """
UPDATE agent.runs SET callback_sent_at = clock_timestamp(), callback_status_code = $3, callback_error = $4
WHERE organization_id = $1 AND id = $2
"""


class PostgresCallbackLog:
    """`ports_runs.CallbackLog`."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool

    async def note(self, organization_id: UUID, run_id: UUID, status_code: int | None, error: str | None) -> None:
        await self._pool.execute(_NOTE, organization_id, run_id, status_code, error)


class HttpPoster:
    """`ports_runs.Poster`. Each call has a connection of its own: callbacks are few, and their hosts many."""

    def __init__(self, *, allow_private: bool) -> None:
        self._allow_private = allow_private

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> int:
        try:
            async with (
                asyncio.timeout(TIMEOUT_SECONDS),
                outward_client(allow_private=self._allow_private, timeout=TIMEOUT_SECONDS) as client,
                # Nobody reads what is answered, however long it is.
                client.stream("POST", url, content=body, headers=dict(headers)) as response,
            ):
                return response.status_code
        except (TimeoutError, httpx.TimeoutException):
            raise NotPosted(f"the callback was not answered within {TIMEOUT_SECONDS:g} s") from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise NotPosted(f"the callback could not be made: {error or type(error).__name__}"[:500]) from None


def check_callback(url: str, *, allow_private: bool) -> None:
    """Judges a callback URL by its text, when a request gives it. Raises InvalidArgument (CALLBACK_URL_INVALID)."""
    try:
        check_url(url, allow_private=allow_private)
    except Refused as refused:
        raise InvalidArgument(f"`callback_url`: {refused}", reason="CALLBACK_URL_INVALID") from None
