"""The vendors' rules on tools, for their fakes: names, descriptions, the top of schemas, keywords.

Sources, read in November 2026: developers.openai.com/api/docs/guides/function-calling, platform.claude.com/docs/en/
agents-and-tools/tool-use, docs.aws.amazon.com/bedrock/latest/APIReference (ToolSpecification, ToolInputSchema),
ai.google.dev/api/caching#FunctionDeclaration, and the sentences in which the APIs answer.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError

MOST_OPENAI_TOOLS = 128
_LONGEST_OPENAI_DESCRIPTION = 1_024
_OPENAI_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_ANTHROPIC_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_ANTHROPIC_KEY = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
_BEDROCK_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_GOOGLE_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}")
_NOT_AT_OPENAIS_TOP = ("oneOf", "anyOf", "allOf", "enum", "not")
_NOT_AT_ANTHROPICS_TOP = ("oneOf", "allOf", "anyOf")

# Message, code, parameter.
Complaint = tuple[str, str, str]


def openai_refusal(functions: Sequence[Mapping[str, Any]], inside: str = ".function") -> Complaint | None:
    """Returns OpenAI's refusal of tools, or None. `inside`: where a tool has its fields."""
    if len(functions) > MOST_OPENAI_TOOLS:
        text = f"Invalid 'tools': array too long. Expected an array with maximum length {MOST_OPENAI_TOOLS}."
        return text, "array_above_max_length", "tools"
    for number, function in enumerate(functions):
        at, name = f"tools[{number}]{inside}", str(function.get("name") or "")
        if not _OPENAI_NAME.fullmatch(name):
            text = f"Invalid '{at}.name': string does not match pattern. Expected '^[a-zA-Z0-9_-]+$'."
            return text, "invalid_value", f"{at}.name"
        if (size := len(function.get("description") or "")) > _LONGEST_OPENAI_DESCRIPTION:
            text = (
                f"Invalid '{at}.description': string too long. Expected a string with maximum length "
                f"{_LONGEST_OPENAI_DESCRIPTION}, but got a string with length {size} instead."
            )
            return text, "string_above_max_length", f"{at}.description"
        if why := _openai_schema_refusal(function.get("parameters")):
            return f"Invalid schema for function '{name}': {why}", "invalid_function_parameters", f"{at}.parameters"
    return None


def _openai_schema_refusal(schema: Any) -> str | None:
    if schema is None or schema == {}:
        return None
    if (
        not isinstance(schema, Mapping)
        or schema.get("type") != "object"
        or any(n in schema for n in _NOT_AT_OPENAIS_TOP)
    ):
        return "schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level."
    if "properties" not in schema:
        return "In context=(), object schema missing properties."
    if not isinstance(schema["properties"], Mapping):
        return f"{schema['properties']!r} is not of type 'object'."
    for place, one in _schemas_in(schema):
        kind = one.get("type")
        if (kind == "array" or (isinstance(kind, list) and "array" in kind)) and "items" not in one:
            return f"In context={place}, array schema missing items."
    return _draft_refusal(schema)


def anthropic_refusal(tools: Sequence[Mapping[str, Any]]) -> str | None:
    """Returns Anthropic's refusal of tools, or None."""
    names = [tool.get("name") for tool in tools]
    if len(set(names)) < len(names):
        return "tools: Tool names must be unique."
    for number, tool in enumerate(tools):
        at = f"tools.{number}.custom"
        if not _ANTHROPIC_NAME.fullmatch(str(tool.get("name") or "")):
            return f"{at}.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'"
        if why := _anthropic_schema_refusal(tool.get("input_schema")):
            return f"{at}.{why}"
    return None


def _anthropic_schema_refusal(schema: Any) -> str | None:
    if not isinstance(schema, Mapping):
        return "input_schema: Input should be a valid dictionary"
    if any(name in schema for name in _NOT_AT_ANTHROPICS_TOP):
        return "input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level"
    if "type" not in schema:
        return "input_schema.type: Field required"
    if schema["type"] != "object":
        return "input_schema.type: Input should be 'object'"
    properties = schema.get("properties") or {}
    if not isinstance(properties, Mapping) or isinstance(schema.get("properties"), list):
        return "input_schema.properties: Input should be a valid dictionary"
    if not all(map(_ANTHROPIC_KEY.fullmatch, properties)):
        return "input_schema.properties: Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'"
    if why := _draft_refusal(schema):
        return f"input_schema: JSON schema is invalid. It must match JSON Schema draft 2020-12 ({why})"
    return None


def bedrock_refusal(specs: Sequence[Mapping[str, Any]], *, is_claude: bool) -> str | None:
    """Returns Bedrock's refusal of tools, or None."""
    for number, spec in enumerate(specs):
        at, schema = f"toolConfig.tools.{number}.toolSpec", (spec.get("inputSchema") or {}).get("json")
        if not _BEDROCK_NAME.fullmatch(str(spec.get("name") or "")):
            return f"Value at '{at}.name' failed to satisfy constraint: must satisfy regular expression pattern: " + (
                _BEDROCK_NAME.pattern
            )
        if not isinstance(schema, Mapping) or schema.get("type") != "object":
            return f"The value at {at}.inputSchema.json.type must be one of the following: object."
    if not is_claude:
        return None
    named = [{"name": spec["name"], "input_schema": spec["inputSchema"]["json"]} for spec in specs]
    return anthropic_refusal(named)


def google_refusal(declarations: Sequence[Mapping[str, Any]]) -> str | None:
    """Returns Google's refusal of functions, or None."""
    seen: set[str] = set()
    for number, one in enumerate(declarations):
        name = str(one.get("name") or "")
        if not _GOOGLE_NAME.fullmatch(name):
            return (
                f"* GenerateContentRequest.tools[0].function_declarations[{number}].name: Invalid function name. "
                "Must start with a letter or an underscore."
            )
        if name in seen:
            return f"Duplicate function declaration found: {name}"
        seen.add(name)
        schema = one.get("parametersJsonSchema")
        if schema is not None and schema.get("type", "object") != "object":
            return (
                f"* GenerateContentRequest.tools[0].function_declarations[{number}].parameters_json_schema: "
                "top level must be of type object"
            )
        for _, part in _schemas_in(schema or {}):
            if part.get("type") == "array" and not part.keys() & {"items", "prefixItems"}:
                at = f"GenerateContentRequest.tools[0].function_declarations[{number}]"
                return f"* {at}.parameters.items: missing field."
    return None


def _draft_refusal(schema: Any) -> str | None:
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        return error.message
    for _, one in _schemas_in(schema):
        reference = one.get("$ref")
        if isinstance(reference, str) and not _is_there(schema, reference):
            return f"reference can only point to definitions defined at the top level of the schema: {reference}"
    return None


def _is_there(schema: Any, reference: str) -> bool:
    if not reference.startswith("#"):
        return False
    target = schema
    for step in filter(None, reference[1:].split("/")):
        if not isinstance(target, Mapping) or step not in target:
            return False
        target = target[step]
    return True


def _schemas_in(schema: Any, place: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Mapping[str, Any]]]:
    if not isinstance(schema, Mapping):
        return
    yield place, schema
    for name in ("properties", "$defs", "definitions"):
        for key, value in (schema.get(name) or {}).items():
            yield from _schemas_in(value, (*place, name, key))
    for name in ("anyOf", "oneOf", "allOf", "prefixItems"):
        for number, value in enumerate(schema.get(name) or ()):
            yield from _schemas_in(value, (*place, name, str(number)))
    for name in ("items", "additionalProperties"):
        yield from _schemas_in(schema.get(name), (*place, name))
