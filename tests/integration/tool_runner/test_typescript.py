"""A TypeScript tool from its source to its call, over gRPC: its schema, whether it takes the state, what is run."""

import json

import pytest

from loci.tool.v1 import tool_service_pb2 as tool_pb
from services.common.errors import InvalidArgument
from services.tool_runner.core.job import ExitReason, Language, Result
from tests.integration.tool_runner.harness import Service, fails

ROLL = """
/** What is rolled. */
interface Dice { sides: number; count?: number }

/**
 * Roll dice.
 * @param dice What to roll.
 * @param loud Whether to shout.
 */
export function rollDice(dice: Dice[], loud = false, agent_state?: unknown): string {
  return dice.map((each) => each.sides).join() + (loud ? "!" : "");
}
"""


async def test_a_typescript_tool_is_made_from_its_source_and_called(runner: Service) -> None:
    tool = await runner.upsert(ROLL, source_type="typescript")
    assert (tool.name, tool.description, tool.source_type) == ("rollDice", "Roll dice.", "typescript")
    assert tool.takes_agent_state
    parameters = json.loads(tool.json_schema_json)["parameters"]
    assert parameters["required"] == ["dice"]
    assert parameters["properties"]["dice"]["items"]["required"] == ["sides"]

    runner.sandbox.gate.set()
    runner.sandbox.result = Result(ExitReason.OK, result='"6!"')
    receipt = await runner.call(tool.id, loud=True, dice=[{"sides": 6}])
    assert receipt.tool_return == "6!"
    (job,) = runner.sandbox.jobs
    assert (job.language, job.function, job.parameters) == (Language.NODE, "rollDice", ("dice", "loud"))
    wrong = await runner.call(tool.id, dice=[{"count": 6}])
    assert "dice[0]: sides must be given" in wrong.tool_return


async def test_a_given_schema_wins(runner: Service) -> None:
    schema = {"name": "rollDice", "description": "Roll.", "parameters": {"type": "object", "properties": {}}}
    tool = await runner.upsert(ROLL, source_type="typescript", json_schema_json=json.dumps(schema))
    assert json.loads(tool.json_schema_json) == schema


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("/** F. */\nfunction f(x: Date) {}", "line 2: parameter 'x' of function 'f' has type Date"),
        ("const a = 1;\nfunction f( {", "line 2"),
        ("(" * 250_000, "does not parse"),
    ],
)
async def test_a_schema_that_cannot_be_is_refused_with_its_line(runner: Service, source: str, says: str) -> None:
    request = tool_pb.GenerateToolSchemaRequest(source_code=source, source_type="typescript")
    with fails(InvalidArgument, "TOOL_SOURCE_INVALID") as caught:
        await runner.tools.GenerateToolSchema(request)
    assert says in caught[0].message
