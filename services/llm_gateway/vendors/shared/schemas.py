"""JSON Schemas of tools and replies in the subsets that dialects take. Pure.

`plain`: what every server takes. `strict`: OpenAI's structured outputs, where every property is required and every
object closed. There an optional property becomes one that may be null, and strict_values.py takes such nulls out again.
Keywords that only narrow a value (minLength, uniqueItems, ...) are refused there, so they are said in the description.
A schema that cannot be strict without another meaning has no strict form: an object with free keys, a value of any
type, a tuple, `allOf` of several, `if`, a reference to outside. Its tool is then offered without strict. Undeclared
properties of an object that does not speak of them are given up: nobody means them.

Source of the subset and its limits: developers.openai.com/api/docs/guides/structured-outputs, read in November 2026.
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import orjson

MOST_PROPERTIES = 5_000
MOST_LEVELS = 10
MOST_CHARACTERS = 120_000
MOST_ENUM_VALUES = 1_000
_LONG_ENUM, _LONG_ENUM_CHARACTERS = 250, 15_000

_NULL = {"type": "null"}
_KEPT = frozenset(
    {"type", "title", "description", "enum", "const", "pattern", "multipleOf", "minimum", "maximum"}
    | {"exclusiveMinimum", "exclusiveMaximum", "minItems", "maxItems"}
)
_FORMATS = frozenset({"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"})
# Refused there, and only a closer description of the value.
_TOLD = ("default", "examples", "format", "minLength", "maxLength", "uniqueItems", "contains", "minContains")
_TOLD_TOO = ("maxContains", "minProperties", "maxProperties", "dependentRequired", "not", "contentEncoding")
# Refused there, and the value would be another without them.
_NEEDED = frozenset(
    {"allOf", "if", "then", "else", "dependentSchemas", "patternProperties", "propertyNames", "prefixItems"}
    | {"unevaluatedProperties", "unevaluatedItems", "dependencies", "additionalItems", "$dynamicRef", "$recursiveRef"}
)
_MARKS = frozenset({"$schema", "$id", "$comment"})
_BY_TYPE: Mapping[type, str] = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}


class SchemaTooLarge(ValueError):
    """More than strict mode takes; the message names the limit."""


class _NotStrict(Exception):
    """The schema has no strict form."""


@lru_cache(maxsize=2_048)
def plain_json(parameters_json: str) -> str:
    """The schema of a tool's arguments as every server takes it; the same text where nothing had to change."""
    schema = parse_schema(parameters_json)
    plain_schema = plain(schema)
    return parameters_json if plain_schema == schema else orjson.dumps(plain_schema).decode()


@lru_cache(maxsize=2_048)
def strict_json(parameters_json: str) -> str | None:
    """The strict form of a tool's schema, None where it has none. Raises SchemaTooLarge."""
    strict_schema = strict(parse_schema(parameters_json))
    return None if strict_schema is None else orjson.dumps(strict_schema).decode()


def parse_schema(text: str) -> dict[str, Any]:
    """The schema that the text is; an empty one where it is none."""
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        value = None
    return value if isinstance(value, dict) else {}


def plain(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema as an object with properties, without the marks that say where it comes from."""
    kept = {name: value for name, value in schema.items() if name not in _MARKS}
    if "type" not in kept and not kept.keys() & {"anyOf", "oneOf", "allOf", "$ref"}:
        kept["type"] = "object"
    if kept.get("type") == "object":
        kept.setdefault("properties", {})
    return kept


def strict(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """The strict form, None where it has none. Raises SchemaTooLarge."""
    if schema.get("type") != "object" or not isinstance(schema.get("properties"), Mapping):
        return None
    try:
        strict_schema = _strict(schema, root=True)
    except (_NotStrict, RecursionError):
        return None
    _check_size(strict_schema)
    return strict_schema


def strict_reply(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """The same for a reply, which nobody takes nulls out of: None where any property is optional."""
    strict_schema = strict(schema)
    return None if strict_schema is None or any(map(_has_optional, _schemas_in(schema))) else strict_schema


def _strict(schema: Any, *, root: bool = False) -> dict[str, Any]:
    schema = unwrap(schema)
    if not isinstance(schema, Mapping) or schema.keys() & _NEEDED:
        raise _NotStrict
    if "$ref" in schema:
        return _reference(schema)
    kept = {name: value for name, value in schema.items() if name in _KEPT}
    if schema.get("format") in _FORMATS:
        kept["format"] = schema["format"]
    if notes := _notes(schema):
        kept["description"] = " ".join(filter(None, (kept.get("description", ""), notes)))
    if choices := schema.get("anyOf") or schema.get("oneOf"):
        if root or schema.keys() & {"properties", "items"}:
            raise _NotStrict
        kept.pop("type", None)
        kept["anyOf"] = [_strict(choice) for choice in choices]
    else:
        kept["type"] = _type(schema)
        kept |= _inside(schema, kept["type"], root=root)
    if schema.get("nullable") is True:
        kept = _or_null(kept)
    if named := {**schema.get("definitions", {}), **schema.get("$defs", {})}:
        kept["$defs"] = {name: _strict(value) for name, value in named.items()}
    return kept


def unwrap(schema: Any) -> Any:
    """`allOf` of one schema is that schema."""
    if isinstance(schema, Mapping) and isinstance(schema.get("allOf"), list) and len(schema["allOf"]) == 1:
        others = {name: value for name, value in schema.items() if name != "allOf"}
        return {**schema["allOf"][0], **others}
    return schema


def _reference(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A reference stands alone there, so that its description goes around it."""
    target = str(schema["$ref"]).replace("#/definitions/", "#/$defs/")
    if target != "#" and not target.startswith("#/$defs/"):
        raise _NotStrict
    described = {name: schema[name] for name in ("title", "description") if name in schema}
    if notes := _notes(schema):
        described["description"] = " ".join(filter(None, (described.get("description", ""), notes)))
    return {"anyOf": [{"$ref": target}], **described} if described else {"$ref": target}


def _type(schema: Mapping[str, Any]) -> Any:
    kind = schema.get("type")
    if kind is None:
        values = schema.get("enum", [schema["const"]] if "const" in schema else [])
        kinds = list(dict.fromkeys(_BY_TYPE.get(type(value), "") for value in values))
        if not kinds or "" in kinds:
            raise _NotStrict
        kind = kinds[0] if len(kinds) == 1 else kinds
    return kind


def _inside(schema: Mapping[str, Any], kind: Any, *, root: bool) -> dict[str, Any]:
    """Returns the parts of an object or array."""
    kinds = [kind] if isinstance(kind, str) else list(kind)
    members: dict[str, Any] = {}
    if "object" in kinds:
        members |= _object(schema, root=root)
    if "array" in kinds:
        if not isinstance(schema.get("items"), Mapping):
            raise _NotStrict
        members["items"] = _strict(schema["items"])
    return members


def _object(schema: Mapping[str, Any], *, root: bool) -> dict[str, Any]:
    properties = schema.get("properties") or {}
    if schema.get("additionalProperties", False) is not False:
        raise _NotStrict
    if not properties and not root and "additionalProperties" not in schema:
        raise _NotStrict
    required = schema.get("required") or ()
    members = {name: _strict(value) for name, value in properties.items()}
    return {
        "properties": {name: value if name in required else _or_null(value) for name, value in members.items()},
        "required": list(members),
        "additionalProperties": False,
    }


def _or_null(schema: dict[str, Any]) -> dict[str, Any]:
    if "anyOf" in schema:
        return {**schema, "anyOf": [*schema["anyOf"], *([] if _NULL in schema["anyOf"] else [_NULL])]}
    if "$ref" in schema or "const" in schema:
        return {"anyOf": [schema, _NULL]}
    kinds = [schema["type"]] if isinstance(schema["type"], str) else list(schema["type"])
    if "null" not in kinds:
        schema = {**schema, "type": [*kinds, "null"]}
    return {**schema, "enum": [*schema["enum"], None]} if None not in schema.get("enum", [None]) else schema


def _notes(schema: Mapping[str, Any]) -> str:
    described = {name: schema[name] for name in (*_TOLD, *_TOLD_TOO) if name in schema}
    if described.get("format") in _FORMATS:
        del described["format"]
    return f"({', '.join(f'{name}: {_shown(value)}' for name, value in described.items())})" if described else ""


def _shown(value: Any) -> str:
    return orjson.dumps(value).decode()


def _check_size(schema: dict[str, Any]) -> None:
    properties = characters = values = 0
    for one in _schemas_in(schema):
        names = [*one.get("properties", {}), *one.get("$defs", {})]
        enum = one.get("enum", [])
        texts = [value for value in [*enum, one.get("const")] if isinstance(value, str)]
        properties += len(one.get("properties", {}))
        values += len(enum)
        characters += sum(map(len, names)) + sum(map(len, texts))
        if len(enum) > _LONG_ENUM and sum(map(len, texts)) > _LONG_ENUM_CHARACTERS:
            raise SchemaTooLarge(
                f"an enum of more than {_LONG_ENUM} values has over {_LONG_ENUM_CHARACTERS:,} characters"
            )
    sums = (
        (properties, MOST_PROPERTIES, "properties"),
        (_levels(schema), MOST_LEVELS, "levels of nesting"),
        (characters, MOST_CHARACTERS, "characters in names and enum values"),
        (values, MOST_ENUM_VALUES, "enum values"),
    )
    for have, most, what in sums:
        if have > most:
            raise SchemaTooLarge(f"it has {have:,} {what}; strict mode takes {most:,}")


def _schemas_in(schema: Any) -> Iterator[Mapping[str, Any]]:
    if not isinstance(schema, Mapping):
        return
    yield schema
    for child in _children(schema):
        yield from _schemas_in(child)


def _children(schema: Mapping[str, Any]) -> Iterator[Any]:
    for name in ("properties", "$defs", "definitions"):
        yield from (schema.get(name) or {}).values()
    for name in ("anyOf", "oneOf", "allOf"):
        yield from schema.get(name) or ()
    if "items" in schema:
        yield schema["items"]


def _levels(schema: Any) -> int:
    if not isinstance(schema, Mapping):
        return 0
    return ("properties" in schema) + max(map(_levels, _children(schema)), default=0)


def _has_optional(schema: Mapping[str, Any]) -> bool:
    return bool((schema.get("properties") or {}).keys() - set(schema.get("required") or ()))
