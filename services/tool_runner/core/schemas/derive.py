"""The schema of a tool from its source, in whichever language it is. Pure; `child_processes/` runs it."""

from dataclasses import dataclass
from importlib import import_module
from typing import Any

from services.tool_runner.core.schemas import python
from services.tool_runner.core.schemas.constraints import Schema
from services.tool_runner.core.schemas.rules import check_schema

SCRIPTS = frozenset({"typescript", "javascript"})


@dataclass(frozen=True)
class DerivedSchema:
    """The schema of a tool's source. `schema` has name, description and parameters."""

    schema: Schema
    takes_agent_state: bool


def derive(
    source: str, source_type: str, schema: Schema | None = None, args_schema: Schema | None = None
) -> DerivedSchema:
    """Returns the schema: derived, or the given one once it is found to be of this source. Raises SchemaError."""
    language: Any = _of_scripts() if source_type in SCRIPTS else python
    if schema is None:
        schema = language.derive_schema(source, args_schema)
    else:
        check_schema(schema)
        language.check_function(source, schema["name"])
    return DerivedSchema(schema, language.takes_state(source, schema["name"]))


def _of_scripts() -> Any:
    # Few tools need the parser, which takes longer to load than a request in Python takes.
    return import_module("services.tool_runner.core.schemas.typescript.derive")
