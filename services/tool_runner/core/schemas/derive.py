"""The schema of a tool from its source, in whichever language it is. Pure; `child_processes/` runs it."""

from dataclasses import dataclass
from importlib import import_module
from typing import Any

from services.tool_runner.core.schemas import python
from services.tool_runner.core.schemas.constraints import Schema
from services.tool_runner.core.schemas.rules import check_schema, no_such_function

SCRIPTS = frozenset({"typescript", "javascript"})


@dataclass(frozen=True)
class DerivedSchema:
    """The schema of a tool's source. `schema` has name, description and parameters."""

    schema: Schema
    takes_agent_state: bool


def derive(
    source: str,
    source_type: str,
    schema: Schema | None = None,
    args_schema: Schema | None = None,
    *,
    description: str = "",
    name: str = "",
) -> DerivedSchema:
    """Returns the schema: derived, or the client's own, by whose name a function in Python need not be called.

    description: stands in for a docstring where `args_schema` says what the arguments are. name: a function that the
    source must define. Raises SchemaError.
    """
    language: Any = _of_scripts() if source_type in SCRIPTS else python
    if schema is not None:
        check_schema(schema)
        language.check_function(source, schema["name"] if source_type in SCRIPTS else name)
    else:
        schema = language.derive_schema(source, args_schema, description)
        if name not in ("", schema["name"]):
            raise no_such_function(name, [schema["name"]])
    return DerivedSchema(schema, language.takes_state(source, schema["name"]))


def _of_scripts() -> Any:
    # Few tools need the parser, which takes longer to load than a request in Python takes.
    return import_module("services.tool_runner.core.schemas.typescript.derive")
