"""Checks a call's arguments before anything runs: here where that is quick, else in a limited child."""

import json
from typing import Any

from services.tool_runner.model import Call, Tool
from services.tool_runner.schemas import given
from services.tool_runner.schemas.faults import SchemaError
from services.tool_runner.schemas.limited import Limited


class Refusal(Exception):
    """The arguments are not what the tool takes; `problems` are sentences for the model."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


async def checked_arguments(tool: Tool, call: Call, limited: Limited) -> dict[str, Any]:
    """The arguments as the tool gets them; raises Refusal."""
    parameters = given.without_habits(json.loads(tool.json_schema).get("parameters") or {})
    try:
        arguments = given.completed(parameters, given.parse(call.arguments))
        if given.is_plain(parameters, call.arguments):
            # jsonschema is 12 MB: a process that never runs a custom tool does without.
            from services.tool_runner.schemas.arguments import problems  # noqa: PLC0415

            found = problems(tool.name, parameters, arguments)
        else:
            found = await limited.problems(tool.name, parameters, arguments)
    except (given.NotAnObject, SchemaError) as error:
        raise Refusal([str(error)]) from None
    if found:
        raise Refusal(found)
    return arguments
