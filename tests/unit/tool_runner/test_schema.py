"""A tool's schema from its source: what is understood, what is refused and how it is said."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.tool_runner.core.schemas.constraints import Schema
from services.tool_runner.core.schemas.derive import derive
from services.tool_runner.core.schemas.docstring import parse_docstring
from services.tool_runner.core.schemas.errors import SchemaError
from services.tool_runner.core.schemas.python import check_function, derive_schema, takes_state
from services.tool_runner.core.schemas.raw_arguments import complete, without_habits
from services.tool_runner.core.schemas.rules import MAX_SOURCE_BYTES, check_schema

IMPORTS = (
    "import datetime, uuid; from annotated_types import Ge, MinLen; from datetime import date, timedelta; "
    "from enum import Enum; from elsewhere import Thing, f, wrap, x; from pydantic import conint, constr"
)


def source(parameters: str, *, before: str = "", docs: str = "x: it") -> str:
    return f'{before}\ndef act({parameters}):\n    """Act.\n\n    Args:\n        {docs}\n    """\n'


def schema_of(annotation: str) -> dict[str, object]:
    derived = derive_schema(source(f"x: {annotation}", before=IMPORTS))
    return {k: v for k, v in derived["parameters"]["properties"]["x"].items() if k != "description"}


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        ("str", {"type": "string"}),
        ("int", {"type": "integer"}),
        ("float", {"type": "number"}),
        ("bool", {"type": "boolean"}),
        ("list", {"type": "array"}),
        ("dict", {"type": "object"}),
        ("Any", {}),
        ("typing.Any", {}),
        ("'str'", {"type": "string"}),
        ("Optional[int]", {"type": "integer"}),
        ("int | None", {"type": "integer"}),
        ("None | int | str", {"anyOf": [{"type": "integer"}, {"type": "string"}]}),
        ("Union[int, str]", {"anyOf": [{"type": "integer"}, {"type": "string"}]}),
        ("Union[int, None]", {"type": "integer"}),
        ("Optional[Union[int, int]]", {"type": "integer"}),
        ("list[str]", {"type": "array", "items": {"type": "string"}}),
        ("List[Dict[str, int]]", {
            "type": "array",
            "items": {"type": "object", "additionalProperties": {"type": "integer"}},
        }),
        ("dict[str, list[float]]", {
            "type": "object",
            "additionalProperties": {"type": "array", "items": {"type": "number"}},
        }),
        ("Literal['a', 'b']", {"type": "string", "enum": ["a", "b"]}),
        ("Literal[1, -2]", {"type": "integer", "enum": [1, -2]}),
        ("Literal['a', 1]", {"enum": ["a", 1]}),
        ("Annotated[int, 'many']", {"type": "integer"}),
        ("typing.Optional[typing.List[str]]", {"type": "array", "items": {"type": "string"}}),
        ("list[Optional[int]]", {"type": "array", "items": {"anyOf": [{"type": "integer"}, {"type": "null"}]}}),
        ("tuple[int, str]", {
            "type": "array",
            "items": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
            "minItems": 2,
            "maxItems": 2,
        }),
        ("tuple[int, ...]", {"type": "array", "items": {"type": "integer"}}),
        ("set[str]", {"type": "array", "items": {"type": "string"}, "uniqueItems": True}),
        ("Sequence[int]", {"type": "array", "items": {"type": "integer"}}),
        ("Mapping[str, Any]", {"type": "object", "additionalProperties": {}}),
        ("datetime.datetime", {"type": "string", "format": "date-time"}),
        ("date", {"type": "string", "format": "date"}),
        ("uuid.UUID", {"type": "string", "format": "uuid"}),
        ("Annotated[int, Field(ge=1, lt=9)]", {"type": "integer", "minimum": 1, "exclusiveMaximum": 9}),
        ("Annotated[Optional[int], Ge(1)]", {"type": "integer", "minimum": 1}),
        ("Annotated[list[str], MinLen(1)]", {"type": "array", "items": {"type": "string"}, "minItems": 1}),
        ("conint(gt=0)", {"type": "integer", "exclusiveMinimum": 0}),
        ("constr(pattern='^a', max_length=3)", {"type": "string", "pattern": "^a", "maxLength": 3}),
    ],
)  # fmt: skip
def test_types(annotation: str, expected: dict[str, object]) -> None:
    assert schema_of(annotation) == expected


@pytest.mark.parametrize(
    "annotation",
    """bytes|timedelta|dict[int, str]|Literal[x]|Literal[b'x']|'no such('|''|"'int'"|Thing|f()|int[str]
    """.strip().split("|"),
)
def test_types_without_a_json_form_are_named(annotation: str) -> None:
    with pytest.raises(SchemaError, match="line 2: parameter 'x' of function 'act' has type") as caught:
        schema_of(annotation)
    assert caught.value.reason == "UNSUPPORTED_TYPE"


def test_the_last_function_is_the_tool() -> None:
    text = source("x: int", before="import os\n\ndef helper():\n    pass\n\nclass Thing:\n    def last(self): pass\n")
    assert derive_schema(text)["name"] == "act"
    assert derive_schema(text + "\nasync def later():\n    '''Later.'''\n")["name"] == "later"
    assert derive_schema(IMPORTS + "\n@wrap\n" + source("x: int").lstrip())["name"] == "act"


def test_what_may_be_left_out_is_not_required() -> None:
    text = source(
        "a: int, b: int = 1, c: Optional[int] = None, d: 'int | None', *, e: str, f: str = 'x'",
        docs="\n        ".join(f"{name}: it" for name in "abcdef"),
    )
    text = text.replace("d: 'int | None', *", "d: 'int | None' = None, *")
    assert derive_schema(text)["parameters"]["required"] == ["a", "e"]
    assert derive_schema(source("x: Optional[int]"))["parameters"]["required"] == []


def test_agent_state_is_hidden() -> None:
    derived = derive_schema(source("agent_state: 'AgentState', x: int"))
    assert list(derived["parameters"]["properties"]) == ["x"]


def test_a_habit_of_older_tools_is_hidden() -> None:
    derived = derive_schema(source("x: int, request_heartbeat: bool = False"))
    assert list(derived["parameters"]["properties"]) == ["x"]


def test_whether_a_function_takes_the_state() -> None:
    text = source("agent_state: 'AgentState', x: int", before="def act(): pass")
    assert takes_state(text, "act")
    assert not takes_state(text + "\ndef act(): pass", "act")


@pytest.mark.parametrize(("annotation", "said"), [("Annotated[int, 'many']", "many"), ("Optional[Kind]", "Which.")])
def test_a_description_may_come_with_the_type(annotation: str, said: str) -> None:
    text = source(
        f"x: {annotation}", before=IMPORTS + '\nclass Kind(Enum):\n    """Which."""\n    A = 1\n', docs="y: other"
    )
    assert derive_schema(text)["parameters"]["properties"]["x"]["description"] == said


def test_given_argument_schema_stands_for_hints_and_descriptions() -> None:
    given_schema = {"type": "object", "properties": {"y": {"type": "string"}}, "required": ["y"]}
    derived = derive_schema("def act(y):\n    '''Act.'''", given_schema)
    assert derived == {"name": "act", "description": "Act.", "parameters": given_schema}
    with pytest.raises(SchemaError, match="type object"):
        derive_schema("def act(y):\n    '''Act.'''", {"type": "string"})


@pytest.mark.parametrize(
    ("text", "reason", "says"),
    [
        ("def f(:", "SOURCE_DOES_NOT_PARSE", "line 1: invalid syntax"),
        ("x = 1\n  y = 2", "SOURCE_DOES_NOT_PARSE", "line 2: unexpected indent"),
        ("x = '\x00'", "SOURCE_DOES_NOT_PARSE", "null bytes"),
        ("x = 1", "NO_FUNCTION", "no function"),
        ("class T:\n    def f(self): pass", "NO_FUNCTION", "no function"),
        ("def f(): pass", "NO_DOCSTRING", "'f' has no docstring"),
        ("def f():\n    '''   '''", "NO_DOCSTRING", "'f' has no docstring"),
        ("def f(x):\n    '''D.'''", "PARAMETER_WITHOUT_TYPE", "parameter 'x' of function 'f' has no type"),
        ("def f(x: int):\n    '''D.'''", "PARAMETER_WITHOUT_DESCRIPTION", "'x: what it is'"),
        ("def f(x, /):\n    '''D.'''", "UNSUPPORTED_PARAMETER", "positional-only"),
        ("def f(*rest):\n    '''D.'''", "UNSUPPORTED_PARAMETER", "'rest'"),
        ("def f(**rest):\n    '''D.'''", "UNSUPPORTED_PARAMETER", "'rest'"),
        ("#" * (MAX_SOURCE_BYTES + 1), "SOURCE_TOO_LARGE", str(MAX_SOURCE_BYTES)),
        ("é" * (MAX_SOURCE_BYTES // 2 + 1), "SOURCE_TOO_LARGE", "bytes"),
        (f"def {'f' * 65}():\n    '''D.'''", "BAD_NAME", "at most 64"),
        ("def größe():\n    '''D.'''", "BAD_NAME", "letters"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(text: str, reason: str, says: str) -> None:
    with pytest.raises(SchemaError) as caught:
        derive_schema(text)
    assert caught.value.reason == reason
    assert says in caught.value.message


def test_given_schemas_must_be_of_the_source() -> None:
    check_function("def f(): pass\ndef g(): pass", "f")
    with pytest.raises(SchemaError, match="function is: f"):
        check_function("def f(): pass", "g")
    for schema in ({}, {"name": ""}, {"name": "a b"}, {"name": "f", "description": 1}, {"name": "f", "parameters": []}):
        with pytest.raises(SchemaError):
            check_schema(schema)


SHAPE: Schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


@pytest.mark.parametrize(
    ("description", "read"), [("Shapes it.", "Shapes it."), ("", "The shaped tool"), ("  ", "The shaped tool")]
)
def test_a_schema_of_arguments_needs_no_docstring(description: str, read: str) -> None:
    derived = derive("def shaped(n):\n    return n", "python", args_schema=SHAPE, description=description)
    assert derived.schema == {"name": "shaped", "description": read, "parameters": SHAPE}
    with pytest.raises(SchemaError, match="no docstring"):
        derive("def shaped(n: int):\n    return n", "python", description=description)


def test_a_schema_of_its_own_may_have_another_name() -> None:
    source = "def first(agent_state): pass\ndef last(n): pass"
    for name, takes in (("other", False), ("first", True)):
        derived = derive(source, "python", {"name": name})
        assert (derived.schema, derived.takes_agent_state) == ({"name": name}, takes)
    with pytest.raises(SchemaError, match="no function"):
        derive("x = 1", "python", {"name": "other"})


@pytest.mark.parametrize(
    ("schema", "name", "fits"),
    [(None, "f", True), (None, "g", False), ({"name": "f"}, "f", True), ({"name": "g"}, "g", False)],
)
def test_new_source_must_have_the_function_of_the_name(schema: Schema | None, name: str, fits: bool) -> None:
    source = "def f():\n    '''D.'''"
    if fits:
        assert derive(source, "python", schema, name=name).schema["name"] == name
    else:
        with pytest.raises(SchemaError, match=f"Tool name '{name}' does not match"):
            derive(source, "python", schema, name=name)


def test_google_docstrings() -> None:
    parsed = parse_docstring(
        """First line.

        More: of it.

        Args:
            one (int, optional): the first,
                continued: here.

            two: the second
            *rest: the others

        Keyword Args:
            named (str): by name

        Returns:
            str: two: this is no argument
        """
    )
    assert parsed.description == "First line.\n\nMore: of it."
    assert parsed.arguments == {
        "one": "the first, continued: here.",
        "two": "the second",
        "rest": "the others",
        "named": "by name",
    }


def test_a_docstring_without_sections_is_description() -> None:
    assert parse_docstring("One.\nTwo: three.").description == "One.\nTwo: three."
    assert parse_docstring("Args:\n").arguments == {}


@given(st.text(max_size=200))
def test_any_source_gives_a_schema_or_a_reason(text: str) -> None:
    try:
        derived = derive_schema(text)
    except SchemaError:
        return
    check_schema(derived)


@given(st.text(alphabet="Argsn x:*()\n\t ", max_size=200))
def test_any_docstring_is_read(text: str) -> None:
    parsed = parse_docstring(text)
    assert all(name for name in parsed.arguments)


def test_what_older_tools_took_out_of_habit_is_not_asked_for() -> None:
    both: dict[str, object] = {"x": {}, "request_heartbeat": {}}
    own = without_habits({"type": "object", "properties": both, "required": list(both)})
    assert own == {"type": "object", "properties": {"x": {}}, "required": ["x"]}
    assert complete(own, {"x": 1, "request_heartbeat": True}) == {"x": 1}
    assert without_habits(own) is own
