"""JSON Schemas of other drafts and other programs, as they are meant in draft 2020-12. Pure.

PHP writes an empty object as []. Draft 3 and 4, and OpenAPI 3.0 after them, have bounds that are exclusive by a flag,
tuples as a list of `items`, `required` in the property itself, and `nullable`. Programs name types of their own
language. Each of these is read as what its writer means; what has no meaning that could be told is left as it is.
"""

from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

Schema = dict[str, Any]

_TYPES = frozenset({"string", "number", "integer", "boolean", "object", "array", "null"})
_OTHER_NAMES = {
    "str": "string",
    "text": "string",
    "int": "integer",
    "long": "integer",
    "float": "number",
    "double": "number",
    "decimal": "number",
    "bool": "boolean",
    "dict": "object",
    "map": "object",
    "list": "array",
    "none": "null",
    "nil": "null",
}
# Keywords whose value is a schema, a list of schemas, or schemas by name.
_ONE = ("additionalProperties", "items", "not", "contains", "propertyNames", "if", "then", "else")
_MORE_OF_ONE = ("unevaluatedItems", "unevaluatedProperties", "additionalItems")
_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_NAMED = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_COUNTS = ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties")
_TEXTS = ("description", "title", "format", "pattern", "$comment", "$ref", "$id", "$anchor")


def as_meant(schema: Any) -> Any:
    """Returns the schema in the form of draft 2020-12; the same where it has that already."""
    if isinstance(schema, list) and not schema:
        return {}
    if not isinstance(schema, Mapping):
        return schema
    made: Schema = dict(schema)
    _repair_type(made)
    _repair_lists(made)
    _repair_bounds(made)
    _repair_children(made)
    _repair_required(made)
    if made.pop("nullable", None) is True:
        return _or_null(made)
    return made


def unresolved_reference(schema: Mapping[str, Any]) -> str:
    """Returns the first reference to what the schema does not define, or to another document; "" where all is there."""
    left: list[Any] = [schema]
    while left:
        value = left.pop()
        if isinstance(value, Mapping):
            reference = value.get("$ref")
            if isinstance(reference, str) and target_of(schema, reference) is None:
                return reference
            left += value.values()
        elif isinstance(value, list):
            left += value
    return ""


def target_of(schema: Mapping[str, Any], reference: str) -> Any:
    """Returns what a reference within the schema names (RFC 6901); None for any other."""
    if reference in ("#", schema.get("$id")):
        return schema
    if not reference.startswith("#/"):
        return None
    target: Any = schema
    for step in reference[2:].split("/"):
        name = unquote(step).replace("~1", "/").replace("~0", "~")
        if isinstance(target, Mapping) and name in target:
            target = target[name]
        elif isinstance(target, list) and name.isdecimal() and int(name) < len(target):
            target = target[int(name)]
        else:
            return None
    return target


def _repair_type(made: Schema) -> None:
    if "type" not in made:
        return
    kinds = made["type"] if isinstance(made["type"], list) else [made["type"]]
    known = list(dict.fromkeys(kind for kind in map(_type_named, kinds) if kind))
    if known and len(known) == len(kinds):
        made["type"] = known if isinstance(made["type"], list) else known[0]
    elif all(isinstance(kind, str | Mapping | None) for kind in kinds):
        # "any", "mixed", an empty text: nothing that could be checked.
        made.pop("type")


def _type_named(name: Any) -> str:
    word = name.strip().lower() if isinstance(name, str) else ""
    return word if word in _TYPES else _OTHER_NAMES.get(word, "")


def _repair_lists(made: Schema) -> None:
    for name in _LISTS:
        if name in made and (not isinstance(made[name], list) or not made[name]):
            made.pop(name)
    values = made.get("enum")
    if isinstance(values, Mapping):
        values = list(values.values())
    if isinstance(values, list) and values:
        made["enum"] = values
    elif "enum" in made:
        made.pop("enum")
    for name in _TEXTS:
        if name in made and not isinstance(made[name], str):
            made.pop(name)


def _repair_bounds(made: Schema) -> None:
    for exclusive, bound in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        value = made.get(exclusive)
        if isinstance(value, bool) or (exclusive in made and value is None):
            made.pop(exclusive)
            if value and bound in made:
                made[exclusive] = made.pop(bound)
    if "divisibleBy" in made:
        made.setdefault("multipleOf", made.pop("divisibleBy"))
    for name in _COUNTS:
        if isinstance(value := made.get(name), str) and value.isdecimal():
            made[name] = int(value)
        elif name in made and value is None:
            made.pop(name)


def _repair_children(made: Schema) -> None:
    if isinstance(items := made.get("items"), list) and items:
        made.setdefault("prefixItems", made.pop("items"))
        if "additionalItems" in made:
            made["items"] = made.pop("additionalItems")
    for name in (*_ONE, *_MORE_OF_ONE):
        if name in made:
            if made[name] is None:
                made.pop(name)
            else:
                made[name] = as_meant(made[name])
    for name in _LISTS:
        if name in made:
            made[name] = [as_meant(each) for each in made[name]]
    for name in _NAMED:
        if name not in made:
            continue
        if isinstance(made[name], Mapping):
            made[name] = {key: {} if each is None else as_meant(each) for key, each in made[name].items()}
        elif not made[name]:
            made[name] = {}


def _repair_required(made: Schema) -> None:
    required = made.get("required")
    if isinstance(required, str):
        required = [required]
    names = [name for name in required if isinstance(name, str)] if isinstance(required, list) else []
    properties = made.get("properties")
    if isinstance(properties, dict):
        for name, each in properties.items():
            if isinstance(each, dict) and isinstance(each.get("required"), bool):
                if each["required"]:
                    names.append(name)
                properties[name] = {key: value for key, value in each.items() if key != "required"}
    if isinstance(required, bool) and made.get("type") != "object":
        # It is the one above that says it: see the loop there.
        return
    if names:
        made["required"] = list(dict.fromkeys(names))
    elif "required" in made and required != []:
        made.pop("required")


def _or_null(made: Schema) -> Schema:
    kind = made.get("type")
    if isinstance(kind, str):
        made["type"] = [kind, "null"] if kind != "null" else kind
        if "enum" in made and None not in made["enum"]:
            made["enum"] = [*made["enum"], None]
        return made
    if isinstance(kind, list):
        made["type"] = kind if "null" in kind else [*kind, "null"]
        return made
    return {"anyOf": [made, {"type": "null"}]} if made.keys() & {"$ref", "anyOf", "oneOf", "allOf", "enum"} else made
