"""The corpus of tools: what their schemas say, what arguments of weak models become."""

from typing import Any

import pytest

from services.tool_runner.core.schemas import raw_arguments
from services.tool_runner.core.schemas.coercion import coerce
from services.tool_runner.core.schemas.python import derive_schema
from services.tool_runner.core.schemas.validation import problems
from services.tool_runner.mcp.protocol import server_tools
from tests.tool_corpus.cases import Case, python_cases
from tests.tool_corpus.mcp_tools import CASES


@pytest.mark.parametrize("case", python_cases(), ids=lambda case: case.name)
def test_python(case: Case) -> None:
    schema = derive_schema(case.source, case.json("args_schema"))
    found = schema["parameters"]["properties"]
    for name, expected in (case.json("schema") or {}).items():
        left_out = set() if "description" in expected else {"description"}
        assert {key: value for key, value in found[name].items() if key not in left_out} == expected
    if case.json("schema"):
        assert found.keys() == case.json("schema").keys()
    assert case.members.get("says", "") in schema["description"]
    assert not {"self", "agent_state"} & found.keys()
    parameters = raw_arguments.without_habits(schema["parameters"])
    arguments = raw_arguments.complete(parameters, coerce(parameters, raw_arguments.parse(case.arguments)))
    assert problems(schema["name"], parameters, arguments) == []


@pytest.mark.parametrize(("name", "schema", "sent", "expected"), CASES, ids=[case[0] for case in CASES])
def test_mcp_servers(name: str, schema: dict[str, Any], sent: dict[str, Any], expected: dict[str, Any]) -> None:
    listing = server_tools.read([{"name": "tool", "description": name, "inputSchema": schema}])
    assert listing.problems == ()
    (offer,) = listing.offers
    arguments = coerce(offer.parameters, sent)
    assert arguments == expected
    assert list(map(type, arguments.values())) == list(map(type, expected.values()))
    assert problems("tool", offer.parameters, arguments) == []
