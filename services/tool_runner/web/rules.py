"""The choice of a search engine: the one that is set, else the first with a key, an agent's own key first. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from services.tool_runner.web.engines import ENGINES
from services.tool_runner.web.engines.engine import Engine
from services.tool_runner.web.errors import WebError


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """engine: the one to use, "" for the first with a key. keys and addresses: by the names in the engines' rows."""

    engine: str = ""
    keys: Mapping[str, str] = field(default_factory=dict, repr=False)
    addresses: Mapping[str, str] = field(default_factory=dict)

    def engine_for(self, environment: Mapping[str, str]) -> Engine:
        """Returns which engine answers a call with these variables; raises WebError where none can."""
        usable = [engine for engine in ENGINES if self._usable(engine, environment)]
        if self.engine:
            usable = [engine for engine in usable if engine.name == self.engine]
        if not usable:
            raise WebError(
                "no search engine is set up. The operator sets one of EXA_API_KEY, TAVILY_API_KEY, BRAVE_API_KEY or "
                "LOCI_SEARXNG_URL; or give this agent a secret of that name (keys only)"
            )
        return usable[0]

    def key(self, engine: Engine, environment: Mapping[str, str]) -> str:
        """Returns the key to ask it with; "" where there is none."""
        return environment.get(engine.key) or self.keys.get(engine.key, "") if engine.key else ""

    def address(self, engine: Engine) -> str:
        """Returns its address, without a slash at its end; "" where nobody set one."""
        return (self.addresses.get(engine.address_setting) or engine.address).rstrip("/")

    def _usable(self, engine: Engine, environment: Mapping[str, str]) -> bool:
        return bool(self.address(engine) and (not engine.key or self.key(engine, environment)))
