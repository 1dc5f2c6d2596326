"""Search engines. Add one: a file with `ENGINE` in it, and its line here; the order is that of preference."""

from services.tool_runner.web.engines import brave, exa, searxng, tavily
from services.tool_runner.web.engines.engine import Engine

ENGINES: tuple[Engine, ...] = (exa.ENGINE, tavily.ENGINE, brave.ENGINE, searxng.ENGINE)
