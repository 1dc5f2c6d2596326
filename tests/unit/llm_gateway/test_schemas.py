"""Schemas in the subsets that dialects take."""

from typing import Any

import jsonschema
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.llm_gateway.vendors.shared import schemas, strict_values

STRING = {"type": "string"}


def obj(required: list[str] | None = None, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required or []}


def closed(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def null(schema: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [schema, {"type": "null"}]}


@pytest.mark.parametrize(
    ("property", "made"),
    [
        (STRING, STRING),
        ({"type": "string", "minLength": 3}, {"type": "string", "description": "(minLength: 3)"}),
        (
            {"type": "integer", "description": "Sides.", "default": 6, "minimum": 2},
            {"type": "integer", "description": "Sides. (default: 6)", "minimum": 2},
        ),
        ({"type": "string", "format": "date"}, {"type": "string", "format": "date"}),
        ({"type": "string", "format": "uri"}, {"type": "string", "description": '(format: "uri")'}),
        ({"enum": ["a", "b"]}, {"enum": ["a", "b"], "type": "string"}),
        ({"enum": ["a", 1]}, {"enum": ["a", 1], "type": ["string", "integer"]}),
        ({"const": True}, {"const": True, "type": "boolean"}),
        ({"oneOf": [STRING, {"type": "null"}]}, {"anyOf": [STRING, {"type": "null"}]}),
        (
            {"type": "array", "items": STRING, "uniqueItems": True},
            {"type": "array", "items": STRING, "description": "(uniqueItems: true)"},
        ),
        (obj(["a"], a=STRING), closed(a=STRING)),
        ({"allOf": [STRING], "description": "x"}, {"type": "string", "description": "x"}),
        ({"type": "string", "nullable": True}, {"type": ["string", "null"]}),
        ({"$ref": "#/definitions/A"}, {"$ref": "#/$defs/A"}),
        ({"$ref": "#/$defs/A", "description": "x"}, {"anyOf": [{"$ref": "#/$defs/A"}], "description": "x"}),
    ],
)
def test_a_required_property(property: dict[str, Any], made: dict[str, Any]) -> None:
    whole = schemas.strict(obj(["p"], p=property))
    assert whole is not None
    assert whole["properties"]["p"] == made
    assert strict_values.restore({"p": "x"}, obj(["p"], p=property), {}) == {"p": "x"}


@pytest.mark.parametrize(
    ("property", "made"),
    [
        (STRING, {"type": ["string", "null"]}),
        ({"type": ["string", "integer"]}, {"type": ["string", "integer", "null"]}),
        ({"type": "string", "enum": ["a"]}, {"type": ["string", "null"], "enum": ["a", None]}),
        ({"anyOf": [STRING]}, null(STRING)),
        ({"const": 1}, null({"const": 1, "type": "integer"})),
        ({"$ref": "#/$defs/A"}, null({"$ref": "#/$defs/A"})),
        (obj(a=STRING), closed(a={"type": ["string", "null"]}) | {"type": ["object", "null"]}),
    ],
)
def test_an_optional_property_may_be_null(property: dict[str, Any], made: dict[str, Any]) -> None:
    schema = {**obj(p=property), "$defs": {"A": STRING}}
    whole = schemas.strict(schema)
    assert whole is not None
    assert (whole["properties"]["p"], whole["required"]) == (made, ["p"])
    assert strict_values.restore({"p": None}, schema, schema) == {}
    assert schemas.strict_reply(schema) is None


@pytest.mark.parametrize(
    "property",
    [
        {},
        {"description": "anything"},
        {"type": "object"},
        {"type": "object", "additionalProperties": STRING},
        {"type": "object", "properties": {"a": STRING}, "additionalProperties": True},
        {"type": "array"},
        {"type": "array", "prefixItems": [STRING]},
        {"allOf": [STRING, {"maxLength": 3}]},
        {"type": "string", "if": {}, "then": {}},
        {"type": "object", "patternProperties": {"^a": STRING}},
        {"type": "object", "properties": {"a": STRING}, "anyOf": [{"required": ["a"]}]},
        {"$ref": "https://host/schema.json"},
        {"$ref": "#/properties/q"},
    ],
)
def test_what_has_no_strict_form(property: dict[str, Any]) -> None:
    assert schemas.strict(obj(["p"], p=property)) is None
    assert schemas.strict_json(orjson.dumps(obj(["p"], p=property)).decode()) is None


@pytest.mark.parametrize("schema", [{}, {"type": "object"}, {"type": "string"}, {"anyOf": [obj()]}])
def test_what_is_no_object_of_known_properties_has_none_either(schema: dict[str, Any]) -> None:
    assert schemas.strict(schema) is None


def test_a_tool_without_arguments_is_closed() -> None:
    assert schemas.strict({"type": "object", "properties": {}}) == closed()


def nested(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = STRING
    for _ in range(levels):
        schema = obj(["a"], a=schema)
    return schema


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        (nested(11), "11 levels of nesting; strict mode takes 10"),
        (obj(None, **{f"p{n}": STRING for n in range(5_001)}), "5,001 properties; strict mode takes 5,000"),
        (obj(a={"type": "integer", "enum": list(range(1_001))}), "1,002 enum values; strict mode takes 1,000"),
        (obj(a={"type": "string", "enum": ["x" * 60 + str(n) for n in range(260)]}), "over 15,000 characters"),
        (obj(None, **{"x" * 60_000: STRING, "y" * 60_001: STRING}), "120,001 characters"),
    ],
)
def test_a_limit_is_named(schema: dict[str, Any], told: str) -> None:
    with pytest.raises(schemas.SchemaTooLarge, match=told):
        schemas.strict(schema)


def test_the_limits_themselves_are_taken() -> None:
    assert schemas.strict(nested(10)) is not None


def test_plain() -> None:
    assert schemas.plain({"$schema": "https://json-schema.org/draft", "type": "object"}) == {
        "type": "object",
        "properties": {},
    }
    assert schemas.plain({}) == {"type": "object", "properties": {}}
    free = obj(a={"anyOf": [STRING, obj()]}, b={"type": "object", "additionalProperties": True})
    assert schemas.plain(free) == free
    text = '{"type": "object",  "properties": {}}'
    assert schemas.plain_json(text) is text
    assert orjson.loads(schemas.plain_json("not JSON")) == {"type": "object", "properties": {}}


def test_nulls_are_taken_out_wherever_they_stand_for_nothing() -> None:
    item = obj(["n"], n={"type": "integer"}, note=STRING, seen={"type": ["string", "null"]})
    schema = {
        **obj(items={"type": "array", "items": {"$ref": "#/$defs/Item"}}, either={"anyOf": [item, STRING]}),
        "$defs": {"Item": item},
    }
    text = orjson.dumps(schema).decode()
    given = {"items": [{"n": 1, "note": None, "seen": None}], "either": {"n": 2, "note": None, "seen": "x"}}
    made = strict_values.restore_json(orjson.dumps(given).decode(), text)
    assert orjson.loads(made) == {"items": [{"n": 1, "seen": None}], "either": {"n": 2, "seen": "x"}}
    assert strict_values.restore_json('{"a": 1,,}', text) == '{"a": 1,,}'
    assert strict_values.restore_json('{"either":  "x"}', text) == '{"either":  "x"}'


leaves = st.one_of(
    st.just({"type": "string"}),
    st.just({"type": "string", "minLength": 1, "default": "x"}),
    st.just({"type": "integer", "minimum": 0}),
    st.just({"type": ["number", "null"]}),
    st.just({"enum": ["a", "b"]}),
    st.just({"type": "boolean", "description": "Whether."}),
    st.just({"$ref": "#/$defs/Pair"}),
)
PAIR = obj(["left"], left={"type": "integer"}, right={"type": "integer"})


def objects(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    properties = st.dictionaries(st.sampled_from("abcd"), inner, min_size=1, max_size=3)
    return properties.flatmap(
        lambda made: st.sets(st.sampled_from(sorted(made))).map(lambda names: obj(sorted(names), **made))
    )


def inner_of(children: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    return st.one_of(
        objects(children),
        children.map(lambda item: {"type": "array", "items": item, "maxItems": 2}),
        children.map(lambda item: {"anyOf": [item, {"type": "null"}]}),
    )


whole_schemas = objects(st.recursive(leaves, inner_of, max_leaves=6))


@st.composite
def valued(draw: st.DrawFn) -> tuple[dict[str, Any], Any]:
    schema = {**draw(whole_schemas), "$defs": {"Pair": PAIR}}
    return schema, draw(values(schema))


def values(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    if "$ref" in schema:
        return values(PAIR)
    if "anyOf" in schema:
        return st.one_of(*map(values, schema["anyOf"]))
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    kind = schema["type"]
    if kind == "object":
        made = {name: values(value) for name, value in schema["properties"].items()}
        needed = {name: value for name, value in made.items() if name in schema["required"]}
        return st.fixed_dictionaries(needed, optional={name: made[name] for name in made.keys() - needed.keys()})
    if kind == "array":
        return st.lists(values(schema["items"]), max_size=2)
    simple = {
        "string": st.text(min_size=1, max_size=3),
        "integer": st.integers(0, 9),
        "boolean": st.booleans(),
        "null": st.none(),
    }
    return st.one_of(st.none(), st.floats(0, 1)) if isinstance(kind, list) else simple[kind]


def said(value: Any, schema: dict[str, Any]) -> Any:
    """A value as a model says it under the strict form: with null for what is left out."""
    if "$ref" in schema:
        return said(value, PAIR)
    if "anyOf" in schema:
        return value if value is None else said(value, schema["anyOf"][0])
    if isinstance(value, dict):
        return {name: said(value[name], one) if name in value else None for name, one in schema["properties"].items()}
    return [said(item, schema["items"]) for item in value] if isinstance(value, list) else value


@given(valued())
def test_what_is_valid_can_be_said_in_the_strict_form_and_comes_back_as_it_was(
    case: tuple[dict[str, Any], Any],
) -> None:
    schema, value = case
    jsonschema.validate(value, schema)
    made = schemas.strict(schema)
    assert made is not None
    spoken = said(value, schema)
    jsonschema.validate(spoken, made)
    back = strict_values.restore(spoken, schema, schema)
    assert back == without_optional_nulls(value, schema)
    jsonschema.validate(back, schema)


def without_optional_nulls(value: Any, schema: dict[str, Any]) -> Any:
    """Returns the value without nulls of optional properties: left out and null are both said as null."""
    if "$ref" in schema:
        return without_optional_nulls(value, PAIR)
    if "anyOf" in schema:
        return value if value is None else without_optional_nulls(value, schema["anyOf"][0])
    if isinstance(value, dict):
        properties = schema["properties"]
        made = {name: without_optional_nulls(item, properties[name]) for name, item in value.items()}
        nullable = {name for name, one in properties.items() if "anyOf" in one or isinstance(one.get("type"), list)}
        return made | dict.fromkeys(nullable - value.keys())
    return [without_optional_nulls(item, schema["items"]) for item in value] if isinstance(value, list) else value
