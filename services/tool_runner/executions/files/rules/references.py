"""Arguments that name files: those whose schema says `"format": "file"`. Pure.

They hold the id of a file (`execfile-...`), and reach the tool as the path under which it finds the file.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from services.tool_runner.core.schemas.constraints import Schema

Replace = Callable[[str], str]


def file_references(parameters: Schema, arguments: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Returns the place in the arguments and the text of each."""
    return list(_references_in({"type": "object", **parameters}, arguments, ""))


def replace_references(parameters: Schema, arguments: Mapping[str, Any], path_of: Replace) -> dict[str, Any]:
    """Returns the arguments with paths instead of ids."""
    changed: dict[str, Any] = _replace({"type": "object", **parameters}, dict(arguments), path_of)
    return changed


def _references_in(schema: Any, value: Any, place: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        if _is_file(schema):
            yield place, value
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _references_in(_part(schema, "items"), item, f"{place}[{index}]")
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from _references_in(_property(schema, name), item, f"{place}.{name}".removeprefix("."))


def _replace(schema: Any, value: Any, path_of: Replace) -> Any:
    if isinstance(value, str):
        return path_of(value) if _is_file(schema) else value
    if isinstance(value, list):
        return [_replace(_part(schema, "items"), item, path_of) for item in value]
    if isinstance(value, dict):
        return {name: _replace(_property(schema, name), item, path_of) for name, item in value.items()}
    return value


def _is_file(schema: Any) -> bool:
    return any(option.get("format") == "file" for option in _options(schema))


def _part(schema: Any, name: str) -> Any:
    return next((option[name] for option in _options(schema) if isinstance(option.get(name), dict)), None)


def _property(schema: Any, name: str) -> Any:
    properties = _part(schema, "properties") or {}
    return properties.get(name)


def _options(schema: Any) -> list[dict[str, Any]]:
    """Returns the schema, and those it offers to choose from."""
    if not isinstance(schema, dict):
        return []
    nested = [option for word in ("anyOf", "oneOf") for option in _listed(schema.get(word))]
    return [schema, *(option for option in nested if isinstance(option, dict))]


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
