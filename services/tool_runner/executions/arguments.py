"""Checks a call's arguments before anything runs: here where that is quick, else in a limited child."""

import json
from typing import Any

from services.tool_runner.child_processes.source_parser import SourceParser
from services.tool_runner.core.model import Call, Tool, ToolType
from services.tool_runner.core.schemas import raw_arguments
from services.tool_runner.core.schemas.coercion import coerce
from services.tool_runner.core.schemas.errors import SchemaError


class Refusal(Exception):
    """The arguments are not what the tool takes; `problems` are sentences for the model."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


async def check_arguments(tool: Tool, call: Call, limited: SourceParser) -> dict[str, Any]:
    """Returns the arguments as the tool gets them, coerced where that is no guess; raises Refusal.

    An MCP server looks at its own itself.
    """
    parameters = raw_arguments.without_habits(json.loads(tool.json_schema).get("parameters") or {})
    try:
        arguments = raw_arguments.complete(parameters, coerce(parameters, raw_arguments.parse(call.arguments)))
        if tool.tool_type is ToolType.EXTERNAL_MCP:
            return arguments
        if raw_arguments.is_plain(parameters, call.arguments):
            # jsonschema is 12 MB: a process that never runs a custom tool does without.
            from services.tool_runner.core.schemas.validation import problems  # noqa: PLC0415

            wrong = problems(tool.name, parameters, arguments)
        else:
            wrong = await limited.problems(tool.name, parameters, arguments)
    except (raw_arguments.NotAnObject, SchemaError) as error:
        raise Refusal([str(error)]) from None
    if wrong:
        raise Refusal(wrong)
    return arguments
