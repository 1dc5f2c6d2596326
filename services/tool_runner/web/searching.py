"""Asks a search engine: the one that is set, else the first that there is a key for, an agent's own key first."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx

from services.common.outward import no_cookies
from services.tool_runner.environments.values import MASK
from services.tool_runner.web.bodies import ACCEPTED, Unread, bounded
from services.tool_runner.web.engines import ENGINES
from services.tool_runner.web.engines.engine import Engine, Hit, Query
from services.tool_runner.web.trouble import WebError

_SECONDS = 20.0
_MOST_BYTES = 8 * 1024 * 1024
_SAID_CHARS = 300


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """engine: the one to use, "" for the first with a key. keys and addresses: by the names in the engines' rows."""

    engine: str = ""
    keys: Mapping[str, str] = field(default_factory=dict, repr=False)
    addresses: Mapping[str, str] = field(default_factory=dict)


class WebSearch:
    """Searches by HTTP. Addresses are the operator's, so they may be private."""

    def __init__(self, settings: SearchSettings) -> None:
        self._settings = settings
        self._http = httpx.AsyncClient(timeout=_SECONDS, follow_redirects=False, trust_env=False, cookies=no_cookies())

    def engine_for(self, environment: Mapping[str, str]) -> Engine:
        """Which engine answers a call with these variables; raises WebError where none can."""
        usable = [engine for engine in ENGINES if self._usable(engine, environment)]
        if chosen := self._settings.engine:
            usable = [engine for engine in usable if engine.name == chosen]
        if not usable:
            raise WebError(
                "no search engine is set up. The operator sets one of EXA_API_KEY, TAVILY_API_KEY, BRAVE_API_KEY or "
                "LOCI_SEARXNG_URL; or give this agent a secret of that name (keys only)"
            )
        return usable[0]

    async def search(self, query: Query, environment: Mapping[str, str]) -> tuple[Engine, list[Hit]]:
        """The hits, best first, at most as many as asked; raises WebError."""
        engine = self.engine_for(environment)
        key = self._key(engine, environment)
        request = engine.request(query, key)
        try:
            async with self._http.stream(
                "GET" if request.json is None else "POST",
                self._address(engine) + request.path,
                headers={"Accept-Encoding": ACCEPTED, **request.headers},
                params=dict(request.parameters),
                json=request.json,
            ) as response:
                body = await bounded(response, _MOST_BYTES)
        except Unread as unread:
            raise WebError(f"the answer of {engine.name} {unread}") from None
        except httpx.HTTPError as error:
            raise WebError(f"{engine.name} could not be asked: {str(error) or type(error).__name__}") from error
        if response.status_code != httpx.codes.OK:
            said = body.decode("utf-8", "replace")
            # The operator's key is no variable of the call, which would be masked anyway.
            said = (said.replace(key, MASK) if key else said)[:_SAID_CHARS]
            raise WebError(f"{engine.name} answered {response.status_code}: {said}")
        try:
            return engine, engine.hits(json.loads(body))[: query.most]
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise WebError(f"{engine.name} answered in a form that is not its own ({type(error).__name__})") from error

    async def close(self) -> None:
        """Close connections."""
        await self._http.aclose()

    def _usable(self, engine: Engine, environment: Mapping[str, str]) -> bool:
        return bool(self._address(engine) and (not engine.key or self._key(engine, environment)))

    def _key(self, engine: Engine, environment: Mapping[str, str]) -> str:
        return environment.get(engine.key) or self._settings.keys.get(engine.key, "") if engine.key else ""

    def _address(self, engine: Engine) -> str:
        return (self._settings.addresses.get(engine.address_setting) or engine.address).rstrip("/")


def query_of(arguments: Mapping[str, Any]) -> Query:
    """From the arguments of web_search, which fit its schema."""
    return Query(
        text=arguments["query"],
        most=arguments.get("num_results", 10),
        category=arguments.get("category", ""),
        with_text=arguments.get("include_text", False),
        include_domains=tuple(arguments.get("include_domains", ())),
        exclude_domains=tuple(arguments.get("exclude_domains", ())),
        since=arguments.get("start_published_date", ""),
        until=arguments.get("end_published_date", ""),
        user_location=arguments.get("user_location", ""),
    )
