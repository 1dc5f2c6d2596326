"""Sources and schemas made to exhaust who reads them: each gets a sentence, soon, from the limited child."""

import asyncio

import pytest

from services.tool_runner.child_processes.source_parser import SourceParser
from services.tool_runner.core.schemas.errors import SchemaError

_SIZE = 250_000
_DOC = '"""D.\n\n    Args:\n        x: it\n    """'
_HOSTILE = {
    "python": [
        "(" * _SIZE,
        f"def f(x: {'list[' * 40_000}int{']' * 40_000}):\n    {_DOC}",
        f"def f(x: {'int | ' * 40_000}str):\n    {_DOC}",
        f"def f(x: {'-' * _SIZE}1):\n    {_DOC}",
        "x = " + "9" * 100_000 + "\n" + "a=" * 50_000 + "1",
        "".join(f"class M{n}(M{n + 1}):\n a: int\n" for n in range(5_000)) + f"def f(x: M0):\n    {_DOC}",
        "\n".join(f"A{n} = list[A{n + 1}]" for n in range(9_000)) + f"\ndef f(x: A0):\n    {_DOC}",
        f"class E(Enum):\n A = {'[' * 20_000}\ndef f(x: E):\n    {_DOC}",
        f"class M(BaseModel):\n a: int = Field(description={'(' * 150}'a'{')' * 150}{' + a' * 20_000})\n"
        f"def f(x: M):\n    {_DOC}",
    ],
    "typescript": [
        "(" * _SIZE,
        "{" * _SIZE,
        "/** F. @param x it */ function f(x: " + "Array<" * 40_000 + "1" + ">" * 40_000 + ") {}",
        "/** F.\n@param x it */ function f(x: " + "'a' | " * 40_000 + "1) {}",
        "/** F.\n@param x it */ function f(x: " + "{a:" * 40_000 + "1" + "}" * 40_000 + ") {}",
        "/** F.\n@param x it */ function f(x: " + "D<" * 60_000 + "1" + ">" * 60_000 + ") {}; type D<T> = [T, T]",
        "/** F.\n@param {" + "{" * 200_000 + " x */ function f(x) {}",
        "/** F.\n * @param [" + "a." * 100_000 + "\n*/ function f(x) {}",
        "`${" * 80_000,
        "<" * _SIZE,
        "a?b:" * 60_000 + "c",
        "export function f" * 15_000,
    ],
}


@pytest.mark.parametrize(
    ("source_type", "number"), [(kind, number) for kind, texts in _HOSTILE.items() for number in range(len(texts))]
)
async def test_hostile_sources_are_refused_soon(source_type: str, number: int) -> None:
    async with asyncio.timeout(50):  # by its four seconds of the processor, not by the minute that its parent waits
        with pytest.raises(SchemaError) as caught:
            await SourceParser().derive(_HOSTILE[source_type][number], source_type=source_type)
    assert 0 < len(caught.value.message) < 2_000


async def test_the_limited_child_answers_for_both_languages() -> None:
    python = await SourceParser().derive("def f(agent_state):\n    '''F.'''", source_type="python")
    assert (python.schema["name"], python.takes_agent_state) == ("f", True)
    script = await SourceParser().derive("/** F. */ const f = (agentState) => 1", source_type="typescript")
    assert (script.schema["name"], script.takes_agent_state) == ("f", True)
