"""The cases of all methods."""

from tests.e2e.sdk_methods import agents, memory, places, tools, turns
from tests.e2e.sdk_methods.world import Case

_TABLES = (agents.cases, memory.cases, tools.cases, turns.cases, places.cases)
CASES: dict[str, Case] = {name: case for table in _TABLES for name, case in table.by_method.items()}
