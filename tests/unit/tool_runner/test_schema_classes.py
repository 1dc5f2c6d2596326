"""Classes and aliases of the source as JSON Schema: as Pydantic itself gives it, with everything inlined."""

import enum
from dataclasses import dataclass, field
from datetime import date
from typing import Annotated, Any, Literal, NotRequired, Optional, TypedDict

import pytest
from pydantic import BaseModel, ConfigDict, Field

from services.tool_runner.core.schemas.errors import SchemaError
from services.tool_runner.core.schemas.inline import inline
from services.tool_runner.core.schemas.python import derive_schema

# Behind the rest, so that lines are those of the cases.
IMPORTS = (
    "import enum; from dataclasses import dataclass, field; from datetime import date; "
    "from enum import Enum, StrEnum, auto; from pydantic import ConfigDict"
)
# Run for Pydantic, and read as text by us.
MODELS = '''
class Color(enum.Enum):
    """A colour."""

    RED = "red"
    GREEN = "green"
    _ignore_ = []
    _odd = 'odd'

    def shout(self): return self.value.upper()

class Level(enum.IntEnum):
    LOW = enum.auto()
    HIGH = enum.auto()

class Point(BaseModel):
    """A place."""

    x: float = Field(..., description="to the right", ge=0, le=100)
    y: float = 0.5

class Named(BaseModel):
    name: str = Field(min_length=1, max_length=20, pattern="^[A-Z]")
    note: Optional[str] = None

class Shape(Named):
    """A shape."""

    model_config = ConfigDict(extra="forbid")
    color: Color = Field(description="of its line")
    level: Level
    corners: list[Point] = Field(default_factory=list, max_length=9)
    by_name: dict[str, Point] = {}
    kind: Literal["open", "closed"] = "open"
    born: date
    parent: Point | None
    tags: Annotated[list[str], Field(min_length=1, description="words")] = Field(default=["a"])
    inner: "Point" = Field(alias="innerPoint")
    _secret: int = 3
'''
NAMES = {
    "enum": enum, "BaseModel": BaseModel, "Field": Field, "ConfigDict": ConfigDict, "Optional": Optional,
    "Literal": Literal, "date": date, "Annotated": Annotated, "TypedDict": TypedDict, "NotRequired": NotRequired,
    "dataclass": dataclass, "field": field, "Any": Any,
}  # fmt: skip


def schema_of(definitions: str, annotation: str) -> dict[str, Any]:
    text = f'{definitions}\ndef act(x: {annotation}):\n    """Act.\n\n    Args:\n        x: it\n    """\n{IMPORTS}\n'
    found: dict[str, Any] = derive_schema(text)["parameters"]["properties"]["x"]
    return found


def without(schema: Any, *names: str) -> Any:
    """Titles are names again; Pydantic leaves `required` out where it is empty."""
    if isinstance(schema, list):
        return [without(part, *names) for part in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {key: without(value, *names) for key, value in schema.items() if key not in names or isinstance(value, dict)}
    return kept | ({"required": []} if kept.get("properties") and "required" not in kept else {})


def test_models_are_what_pydantic_says_they_are() -> None:
    namespace: dict[str, Any] = dict(NAMES)
    exec(MODELS, namespace)
    namespace["Shape"].model_rebuild(_types_namespace=namespace)
    wanted = without(inline(namespace["Shape"].model_json_schema()), "title")
    for part in ("parent", "corners", "by_name", "inner", "level", "color"):
        assert without(schema_of(MODELS, "Shape"), "title")["properties"].get(part) == wanted["properties"].get(part)
    assert without(schema_of(MODELS, "Shape") | {"description": "A shape."}, "title", "default") == without(
        wanted, "default"
    )


def test_the_argument_s_own_description_comes_first() -> None:
    assert schema_of(MODELS, "Point")["description"] == "it"
    assert schema_of(MODELS, "list[Point]")["items"]["description"] == "A place."


@pytest.mark.parametrize(
    ("definitions", "annotation", "expected"),
    [
        ("class T(TypedDict):\n a: int\n b: NotRequired[str]", "T",
         {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}, "required": ["a"]}),
        ("class T(TypedDict, total=False):\n a: Required[int]\n b: str", "T",
         {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}, "required": ["a"]}),
        ("@dataclass(frozen=True)\nclass D:\n '''D.\n\n Attributes:\n  a: first\n '''\n a: int\n"
         " b: list = field(default_factory=list)\n c: ClassVar[int] = 1", "D",
         {"type": "object", "properties": {"a": {"type": "integer", "description": "first"}, "b": {"type": "array"}},
          "required": ["a"]}),
        ("class S(StrEnum):\n A = auto()\n B = 'bee'", "S", {"type": "string", "enum": ["a", "bee"]}),
        ("class S(str, Enum):\n A = 'x'", "Literal[S.A]", {"type": "string", "enum": ["x"]}),
        ("Color = Literal['r', 'g']", "list[Color]",
         {"type": "array", "items": {"type": "string", "enum": ["r", "g"]}}),
        ("Id = NewType('Id', int)\nMaybe = Optional[Id]", "Maybe", {"type": "integer"}),
        ("Wide: TypeAlias = 'int | str'", "Wide", {"anyOf": [{"type": "integer"}, {"type": "string"}]}),
        ("from pydantic import *\nclass A(BaseModel):\n x: int\nclass B(A):\n x: str = 'a'", "B",
         {"type": "object", "properties": {"x": {"type": "string", "default": "a"}}, "required": []}),
    ],
)  # fmt: skip
def test_other_kinds(definitions: str, annotation: str, expected: dict[str, Any]) -> None:
    found = schema_of(definitions, annotation)
    assert {key: value for key, value in found.items() if key != "description"} == expected


def test_an_alias_that_admits_none_may_be_left_out() -> None:
    text = 'M = Optional[int]\ndef act(x: M):\n    """Act.\n\n    Args:\n        x: it\n    """\n'
    assert derive_schema(text)["parameters"]["required"] == []


@pytest.mark.parametrize(
    ("definitions", "annotation", "says"),
    [
        ("class N(BaseModel):\n a: int\n inner: list['N']", "N",
         "whose field 'inner' (line 3) has type N, which contains itself"),
        ("A = list['B']\nB = list[A]", "A", "which contains itself"),
        ("class A(B): pass\nclass B(A): pass", "A", "a class that is not an Enum"),
        ("class T:\n pass", "list[T]", "T, a class that is not an Enum, a Pydantic BaseModel"),
        ("class M(BaseModel):\n when: bytes", "M",
         "M, whose field 'when' (line 2) has type bytes, which has no JSON form"),
        ("class E(Enum):\n A = compute()", "E", "values are not all written out"),
        ("class E(Enum):\n pass", "E", "values are not all written out"),
        ("class P(BaseModel, Generic[T]):\n item: T", "P[int]", "P[int], which has no JSON form"),
        # Doubled at each step: 2**40 parts.
        ("\n".join(f"class M{n}(BaseModel):\n a: 'M{n + 1}'\n b: 'M{n + 1}'" for n in range(40)) + "\nM40 = int",
         "M0", "its schema has more than 5000 parts"),
        ("\n".join(f"T{n} = tuple[T{n + 1}, T{n + 1}]" for n in range(40)) + "\nT40 = int",
         "T0", "more than 5000 parts"),
    ],
)  # fmt: skip
def test_what_has_no_end_or_no_form_is_said(definitions: str, annotation: str, says: str) -> None:
    with pytest.raises(SchemaError) as caught:
        schema_of(definitions, annotation)
    assert caught.value.reason == "UNSUPPORTED_TYPE"
    assert says in caught.value.message


def test_definitions_of_a_given_schema_are_inlined() -> None:
    given = {
        "type": "object",
        "properties": {"p": {"$ref": "#/$defs/P", "description": "it"}, "q": {"$ref": "#/elsewhere"}},
        "$defs": {"P": {"type": "object", "properties": {"x": {"$ref": "#/$defs/X"}}}, "X": {"type": "integer"}},
    }
    assert derive_schema("def act(p):\n    '''Act.'''", given)["parameters"] == {
        "type": "object",
        "properties": {
            "p": {"type": "object", "properties": {"x": {"type": "integer"}}, "description": "it"},
            "q": {"$ref": "#/elsewhere"},
        },
        "required": [],
    }
    for name, part in (("A", {"$ref": "#/$defs/A"}), ("A", {"anyOf": [{"items": {"$ref": "#/$defs/A"}}]})):
        with pytest.raises(SchemaError, match="contains itself"):
            inline({"properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {name: part}})
    doubled = {f"D{n}": {"anyOf": [{"$ref": f"#/$defs/D{n + 1}"}] * 2} for n in range(40)}
    with pytest.raises(SchemaError, match="more than 5000 parts"):
        inline({"a": {"$ref": "#/$defs/D0"}, "$defs": doubled})
