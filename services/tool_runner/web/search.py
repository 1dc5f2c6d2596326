"""Asks a search engine."""

import json
from collections.abc import Mapping

import httpx

from services.common.safe_http import no_cookies
from services.tool_runner.sandbox_configs.model import MASK
from services.tool_runner.web.bounded_body import ACCEPTED, BodyTooLarge, read_bounded
from services.tool_runner.web.engines.engine import Engine, Hit, Query
from services.tool_runner.web.errors import WebError
from services.tool_runner.web.rules import SearchSettings

_SECONDS = 20.0
_MOST_BYTES = 8 * 1024 * 1024
_ERROR_CHARS = 300


class WebSearch:
    """Searches by HTTP. Addresses are the operator's, so they may be private."""

    def __init__(self, settings: SearchSettings) -> None:
        self._settings = settings
        self._http = httpx.AsyncClient(timeout=_SECONDS, follow_redirects=False, trust_env=False, cookies=no_cookies())

    async def search(self, query: Query, environment: Mapping[str, str]) -> tuple[Engine, list[Hit]]:
        """Returns the hits, best first, at most as many as asked; raises WebError."""
        engine = self._settings.engine_for(environment)
        key = self._settings.key(engine, environment)
        request = engine.request(query, key)
        try:
            async with self._http.stream(
                "GET" if request.json is None else "POST",
                self._settings.address(engine) + request.path,
                headers={"Accept-Encoding": ACCEPTED, **request.headers},
                params=dict(request.parameters),
                json=request.json,
            ) as response:
                body = await read_bounded(response, _MOST_BYTES)
        except BodyTooLarge as unread:
            raise WebError(f"the answer of {engine.name} {unread}") from None
        except httpx.HTTPError as error:
            raise WebError(f"{engine.name} could not be asked: {str(error) or type(error).__name__}") from error
        if response.status_code != httpx.codes.OK:
            excerpt = body.decode("utf-8", "replace")
            # The operator's key is no variable of the call, which would be masked anyway.
            excerpt = (excerpt.replace(key, MASK) if key else excerpt)[:_ERROR_CHARS]
            raise WebError(f"{engine.name} answered {response.status_code}: {excerpt}")
        try:
            return engine, engine.hits(json.loads(body))[: query.most]
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise WebError(f"{engine.name} answered in a form that is not its own ({type(error).__name__})") from error

    async def close(self) -> None:
        """Closes connections."""
        await self._http.aclose()
