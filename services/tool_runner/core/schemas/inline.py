"""A JSON Schema with what it defines put where it is used: not every provider takes `$ref`. Pure."""

from typing import Any

from services.tool_runner.core.schemas.constraints import Schema
from services.tool_runner.core.schemas.errors import SchemaError

_FOLDERS = ("$defs", "definitions")
_MOST_PARTS = 5_000


def inline(schema: Schema) -> Schema:
    """Returns the schema without `$ref` into its own definitions; raises SchemaError (BAD_SCHEMA) for endless ones."""
    if not any(folder in schema for folder in _FOLDERS):
        return schema
    kept = {name: value for name, value in schema.items() if name not in _FOLDERS}
    found: Schema = _Inlining(schema).inline(kept, ())
    return found


class _Inlining:
    def __init__(self, schema: Schema) -> None:
        self._named = {
            f"#/{folder}/{name}": part
            for folder in _FOLDERS
            if isinstance(schema.get(folder), dict)
            for name, part in schema[folder].items()
        }
        self._parts = 0

    def inline(self, part: Any, inside: tuple[str, ...]) -> Any:
        self._parts += 1
        if self._parts > _MOST_PARTS:
            raise SchemaError("BAD_SCHEMA", f"args_json_schema has more than {_MOST_PARTS} parts: make it simpler")
        if isinstance(part, list):
            return [self.inline(item, inside) for item in part]
        if not isinstance(part, dict):
            return part
        name = part.get("$ref")
        if not isinstance(name, str) or name not in self._named:
            return {key: self.inline(value, inside) for key, value in part.items()}
        if name in inside:
            message = f"args_json_schema: {name} contains itself: it cannot be without end; use an object inside"
            raise SchemaError("BAD_SCHEMA", message)
        beside = {key: self.inline(value, inside) for key, value in part.items() if key != "$ref"}
        return {**self.inline(self._named[name], (*inside, name)), **beside}
