"""Schemas of tools' arguments in the form that every vendor takes: one object, complete in itself. Pure.

OpenAI and Anthropic refuse a request, with all its tools, if one schema has `anyOf`, `oneOf` or `allOf` at its top, and
OpenAI `enum` and `not`; other servers pass over them. There such a choice becomes the object that holds all of its
alternatives: what every one of them requires is required, and what else was demanded is said in the description. So the
model may call whatever it could before, and what it should not call is refused by the tool.

Anthropic, and Bedrock for its models, take names of properties of one alphabet alone, at the top. Others get one that
is like them; what the model calls them by goes back.

Sources: developers.openai.com/api/docs/guides/function-calling, platform.claude.com/docs/en/agents-and-tools/tool-use,
docs.aws.amazon.com/bedrock/latest/APIReference (ToolInputSchema), and what the APIs answer, read in November 2026.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import orjson

from services.common.core.schema_forms import as_meant, target_of, unresolved_reference

_FOREIGN = re.compile(r"[^a-zA-Z0-9_.-]+")
_NAME = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
_LONGEST_NAME = 64
_CHOICES = ("anyOf", "oneOf")
_MORE = ("allOf", "if", "then", "else", "not", "enum", "const", "dependentRequired", "dependentSchemas")
# Their values are no schemas.
_VALUES = frozenset({"enum", "const", "default", "examples", "required", "example"})
_DEPTH = 8
_LONGEST_NOTE = 2_000
# JSON that is nested deeper is written by nobody here.
_MOST_LEVELS = 60


class _NoObject(Exception):
    """The schema is of no object; the text says why."""


@dataclass(frozen=True, slots=True)
class ToolSchema:
    """A schema that can be sent: its text, and the original names of properties by those in it. `is_exact`: it says all
    that the original says. `problem`: why there is none."""

    text: str = ""
    names: Mapping[str, str] = field(default_factory=dict)
    problem: str = ""
    is_exact: bool = True


@lru_cache(maxsize=2_048)
def tool_schema(parameters_json: str, *, narrow_names: bool) -> ToolSchema:
    """Returns the schema as it can be sent; the same text where nothing had to change. `narrow_names`: the vendor takes
    names of one alphabet alone."""
    try:
        given = orjson.loads(parameters_json)
    except orjson.JSONDecodeError:
        return ToolSchema(problem="its schema is not JSON")
    try:
        if _levels(given) > _MOST_LEVELS:
            return ToolSchema(problem=f"its schema is nested deeper than {_MOST_LEVELS} levels")
        schema = as_meant(given)
        if not isinstance(schema, Mapping) or not isinstance(given, Mapping | list):
            return ToolSchema(problem="its schema is no JSON object")
        schema = _with_items(_object(dict(schema)))
        names: Mapping[str, str] = {}
        if narrow_names:
            schema, names = _narrowed(schema)
    except _NoObject as error:
        return ToolSchema(problem=str(error))
    text = parameters_json if schema == given else orjson.dumps(schema).decode()
    return ToolSchema(text, names, is_exact=not set(given) & {*_CHOICES, *_MORE})


def _object(schema: dict[str, Any]) -> dict[str, Any]:
    """Returns the one object that a schema is. Raises _NoObject."""
    if reference := unresolved_reference(schema):
        raise _NoObject(f"its schema refers to {reference[:100]}, which it does not define")
    whole = schema
    schema = _flat(schema, whole, _DEPTH)
    kind = schema.get("type", "object")
    if kind != "object" and "object" not in (kind if isinstance(kind, list) else ()):
        raise _NoObject(f"its schema is of type {kind}, and arguments are an object")
    schema["type"] = "object"
    schema.setdefault("properties", {})
    if not isinstance(schema["properties"], Mapping):
        raise _NoObject("the properties of its schema are no object")
    for name in ("$defs", "definitions"):
        if name in whole:
            schema[name] = whole[name]
    return schema


def _flat(schema: Mapping[str, Any], whole: Mapping[str, Any], depth: int) -> dict[str, Any]:
    """Returns a schema of an object without references and combinations at its top."""
    if not depth:
        raise _NoObject("its schema refers to itself at the top")
    flat = dict(schema)
    if isinstance(reference := flat.pop("$ref", None), str):
        target = target_of(whole, reference)
        if not isinstance(target, Mapping):
            raise _NoObject(f"its schema refers to {reference[:100]}, which is no schema")
        flat = _both(_flat(target, whole, depth - 1), flat)
    notes = []
    for part in flat.pop("allOf", ()):
        if isinstance(part, Mapping):
            flat = _both(flat, _flat(part, whole, depth - 1))
    for name in _CHOICES:
        if (choices := flat.pop(name, None)) is not None:
            notes.append(_note(name, choices))
            flat = _both(flat, _any_of([_flat(one, whole, depth - 1) for one in choices if isinstance(one, Mapping)]))
    rest = {name: flat.pop(name) for name in _MORE if name in flat}
    if rest:
        notes.append(f"(The arguments also fit this JSON Schema: {_text(rest)})")
    return _described(flat, notes)


def _any_of(choices: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Returns the object that holds every alternative. One that is no object cannot be called, and is left out."""
    objects = [one for one in choices if one.get("type", "object") in ("object", ["object", "null"])]
    if not objects:
        raise _NoObject("no alternative of its schema is an object")
    properties: dict[str, Any] = {}
    for one in objects:
        for name, each in _properties(one).items():
            known = properties.get(name, each)
            properties[name] = each if known == each else _either(known, each)
    required = [name for name in _required(objects[0]) if all(name in _required(one) for one in objects)]
    merged: dict[str, Any] = {"properties": properties} if properties else {}
    if all(one.get("additionalProperties") is False for one in objects):
        merged["additionalProperties"] = False
    return merged | ({"required": required} if required else {})


def _either(first: Any, second: Any) -> Any:
    known = list(first["anyOf"]) if isinstance(first, Mapping) and first.keys() == {"anyOf"} else [first]
    return {"anyOf": known if second in known else [*known, second]}


def _both(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the object that is both: properties and what is required are joined."""
    merged = {**first, **second}
    properties = {**_properties(first), **_properties(second)}
    required = list(dict.fromkeys([*_required(first), *_required(second)]))
    descriptions = dict.fromkeys(filter(None, (first.get("description"), second.get("description"))))
    if properties or "properties" in merged:
        merged["properties"] = properties
    if required:
        merged["required"] = required
    if descriptions:
        merged["description"] = " ".join(map(str, descriptions))
    if not (first.get("additionalProperties", True) and second.get("additionalProperties", True)) and properties:
        # Each closed the object for the other's properties.
        merged["additionalProperties"] = False
    return merged


def _properties(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    properties = schema.get("properties") or {}
    if not isinstance(properties, Mapping):
        raise _NoObject("the properties of its schema are no object")
    return properties


def _required(schema: Mapping[str, Any]) -> list[str]:
    required = schema.get("required")
    return [name for name in required if isinstance(name, str)] if isinstance(required, list) else []


def _note(name: str, choices: Any) -> str:
    """Returns the choice in words."""
    how = "exactly one" if name == "oneOf" else "at least one"
    only_required = isinstance(choices, list) and all(isinstance(one, Mapping) and _required(one) for one in choices)
    if only_required and all(one.keys() <= {"required", "type", "title", "description"} for one in choices):
        sets = " or ".join(", ".join(_required(one)) for one in choices)
        return f"(Give {how} of these: {sets}.)"
    return f"(The arguments fit {how} of these JSON Schemas: {_text(choices)})"


def _text(value: Any) -> str:
    text = orjson.dumps(value).decode()
    return text if len(text) <= _LONGEST_NOTE else f"{text[:_LONGEST_NOTE]}..."


def _described(schema: dict[str, Any], notes: Iterable[str]) -> dict[str, Any]:
    if text := " ".join(filter(None, (str(schema.get("description") or ""), *notes))):
        schema["description"] = text
    return schema


def _with_items(schema: Any) -> Any:
    """Returns the schema with `items` in every array: OpenAI and Google refuse one that does not speak of them."""
    if isinstance(schema, list):
        return [_with_items(one) for one in schema]
    if not isinstance(schema, Mapping):
        return schema
    inside = {name: value if name in _VALUES else _with_items(value) for name, value in schema.items()}
    kind = schema.get("type")
    if (kind == "array" or (isinstance(kind, list) and "array" in kind)) and "items" not in schema:
        inside["items"] = {}
    return inside


def _narrowed(schema: dict[str, Any]) -> tuple[dict[str, Any], Mapping[str, str]]:
    """Returns the schema with names of the one alphabet at its top, and the original of each that was changed."""
    properties = schema.get("properties") or {}
    if all(map(_NAME.fullmatch, properties)):
        return schema, {}
    taken = {name for name in properties if _NAME.fullmatch(name)}
    new = {}
    for name in properties:
        new[name] = name if name in taken else _like(name, taken)
        taken.add(new[name])
    changed = {**schema, "properties": {new[name]: each for name, each in properties.items()}}
    if required := _required(schema):
        changed["required"] = [new.get(name, name) for name in required]
    return changed, {made: name for name, made in new.items() if made != name}


def _like(name: str, taken: set[str]) -> str:
    base = _FOREIGN.sub("_", name).strip("_")[:_LONGEST_NAME] or "argument"
    made, number = base, 1
    while made in taken:
        number += 1
        made = f"{base[: _LONGEST_NAME - 4]}_{number}"
    return made


def _levels(value: Any) -> int:
    """Returns how deep a value is nested, looked at without recursion."""
    deepest, left = 0, [(value, 1)]
    while left:
        one, depth = left.pop()
        deepest = max(deepest, depth)
        if isinstance(one, dict):
            left += [(each, depth + 1) for each in one.values()]
        elif isinstance(one, list):
            left += [(each, depth + 1) for each in one]
    return deepest
