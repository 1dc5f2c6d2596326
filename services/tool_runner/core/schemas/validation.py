"""A call's arguments against the tool's JSON Schema (draft 2020-12), before anything runs. Pure.

What is wrong is said in sentences for the model, each beginning with the place: `items[2].count: must be ...`.
jsonschema is imported where it is first needed: it is 12 MB, and most processes never see a custom tool.
"""

import json
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError as InvalidSchema
from jsonschema.exceptions import ValidationError
from referencing import Registry
from referencing.exceptions import Unresolvable

from services.tool_runner.core.schemas.constraints import Schema
from services.tool_runner.core.schemas.errors import SchemaError

_MOST_PROBLEMS = 5
_QUOTE_CHARS = 80
# Without it jsonschema would fetch what a $ref names, from wherever that is.
_NOTHING_REMOTE: Registry[Any] = Registry()
_KINDS = {
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}


def check_parameters(name: str, parameters: Schema) -> None:
    """Checks that this is a JSON Schema at all; raises SchemaError."""
    try:
        Draft202012Validator.check_schema(parameters)
    except InvalidSchema as error:
        place = "/".join(map(str, error.path)) or "the top"
        message = f"the parameters of tool {name!r} are not a JSON Schema: at {place}: {error.message[:300]}"
        raise SchemaError("BAD_SCHEMA", message) from error


def problems(name: str, parameters: Schema, arguments: dict[str, Any]) -> list[str]:
    """Returns what is wrong with the arguments, at most five sentences; empty where nothing is."""
    validator = Draft202012Validator(parameters, registry=_NOTHING_REMOTE)
    try:
        sentences = [_sentence(error) for error in validator.iter_errors(arguments)]
    except (Unresolvable, RecursionError) as error:
        return [f"the schema of {name} cannot be used: {str(error)[:200] or 'it refers to itself without end'}"]
    return list(dict.fromkeys(_unknown_names(name, parameters, arguments) + sentences))[:_MOST_PROBLEMS]


def _unknown_names(name: str, parameters: Schema, arguments: dict[str, Any]) -> list[str]:
    """Arguments that the function would refuse as unexpected, unless the schema speaks of such itself."""
    speaks = {"additionalProperties", "patternProperties", "unevaluatedProperties", "allOf", "anyOf", "oneOf", "$ref"}
    if speaks & parameters.keys():
        return []
    known = parameters.get("properties", {})
    return [
        f"{argument}: is not an argument of {name}; it takes {', '.join(known) or 'none'}"
        for argument in arguments
        if argument not in known
    ]


def _sentence(error: ValidationError) -> str:
    place = _place(error.absolute_path)
    expectation: Any = error.validator_value
    match error.validator:
        case "type":
            kinds = [expectation] if isinstance(expectation, str) else expectation
            expected = " or ".join(_KINDS.get(kind, kind) for kind in kinds)
            return f"{place}: must be {expected}, not {_excerpt(error.instance)}"
        case "required":
            instance: Any = error.instance
            missing = ", ".join(key for key in expectation if key not in instance)
            return f"{place}: {missing} must be given and is missing"
        case "enum" | "const":
            options = expectation if error.validator == "enum" else [expectation]
            expected = ", ".join(json.dumps(option, ensure_ascii=False) for option in options[:20])
            return f"{place}: must be one of {expected}, not {_excerpt(error.instance)}"
        case "anyOf" | "oneOf":
            expected = " or ".join(_kind(option) for option in expectation[:10])
            return f"{place}: must be {expected}, not {_excerpt(error.instance)}"
    return f"{place}: {error.message[:300]}"


def _kind(schema: Any) -> str:
    kind = schema.get("type") if isinstance(schema, dict) else None
    return _KINDS.get(kind, "another form of it") if isinstance(kind, str) else "another form of it"


def _place(path: Any) -> str:
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return text.removeprefix(".") or "arguments"


def _excerpt(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _QUOTE_CHARS else text[:_QUOTE_CHARS] + "..."
