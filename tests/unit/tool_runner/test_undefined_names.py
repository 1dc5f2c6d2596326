"""Names that a source uses and nothing defines: found when a tool is made, with their line."""

import typing

import pytest

from services.tool_runner.core.schemas.ambient import AMBIENT
from services.tool_runner.core.schemas.errors import SchemaError
from services.tool_runner.core.schemas.python import derive_schema

DOCS = '"""D.\n\n    Args:\n        x: it\n    """'
ANY: dict[str, object] = {"type": "object", "properties": {"x": {}}}


@pytest.mark.parametrize(
    ("source", "line", "name"),
    [
        ("def f(x: Thing):\n    {}", 1, "Thing"),
        ("\n\ndef f(x: 'List[Thing]'):\n    {}", 3, "Thing"),
        ("def f(x: datetime):\n    {}", 1, "datetime"),
        ("def f(x: pd.DataFrame):\n    {}", 1, "pd"),
        ("def f(x: int = LIMIT):\n    {}", 1, "LIMIT"),
        ("@wrap\ndef f(x: int):\n    {}", 1, "wrap"),
        ("class A(Base):\n    pass\ndef f(x: int):\n    {}", 1, "Base"),
        ("class A(BaseModel):\n    a: int\n    b: date\ndef f(x: A):\n    {}", 3, "date"),
        ("print(os.name)\ndef f(x: int):\n    {}", 1, "os"),
        ("A = [n for n in numbers]\ndef f(x: int):\n    {}", 1, "numbers"),
    ],
)
def test_it_is_said(source: str, line: int, name: str) -> None:
    with pytest.raises(SchemaError) as caught:
        derive_schema(source.format(DOCS))
    assert caught.value.reason == "UNDEFINED_NAME"
    assert caught.value.message.startswith(f"line {line}: ")
    assert repr(name) in caught.value.message


@pytest.mark.parametrize(
    "source",
    [
        "def f(x: List[Dict[str, Any]], *, agent_state: typing.Optional[State] = None) -> Nothing:\n    {}",
        "from things import *\ndef f(x: int = LIMIT):\n    {}",
        "try:\n    unicode\nexcept NameError:\n    unicode = str\ndef f(x: int):\n    {}",
        "A = [(lambda z: z + later)(n) for n in range(3) if n]\ndef f(x: int = len('a')):\n    {}\n    return nowhere",
        "def g():\n    global LIMIT\n    LIMIT = 1\ng()\ndef f(x: int = LIMIT):\n    {}",
        "import a.b as c, os.path\nwith open(os.devnull) as file:\n    pass\ndef f(x: int = c):\n    {}",
        "def f(x: Literal['no name', 'a b']):\n    {}",
        "def f(x: Annotated[int, Field(description='no name')]):\n    {}",
        "if __name__ == '__main__':\n    print(client)\ndef f(self, x: int):\n    {}",
    ],
)
def test_what_is_defined_somehow_is_taken(source: str) -> None:
    assert derive_schema(source.format(DOCS))["parameters"]["properties"].keys() == {"x"}


def test_types_need_not_be_there_where_the_client_gives_the_schema() -> None:
    assert derive_schema("def f(x: Entry) -> Entry:\n    '''D.'''", ANY)["name"] == "f"
    with pytest.raises(SchemaError, match="line 1: the name 'LIMIT'"):
        derive_schema("def f(x: Entry = LIMIT):\n    '''D.'''", ANY)


def test_all_of_typing_is_there() -> None:
    assert set(typing.__all__) <= AMBIENT
