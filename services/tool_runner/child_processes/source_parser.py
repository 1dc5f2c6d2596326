"""Work on what tenants wrote that could exhaust a process: done in a short-lived child with limits."""

import asyncio
import json
from typing import Any

from services.tool_runner.child_processes.run import ask
from services.tool_runner.core.schemas.constraints import Schema
from services.tool_runner.core.schemas.derive import DerivedSchema
from services.tool_runner.core.schemas.errors import SchemaError
from services.tool_runner.core.schemas.rules import MAX_SOURCE_BYTES

_CHILD = "services.tool_runner.child_processes.source_parser_child"
# What really bounds it is its processor time, see source_parser_child.py: a busy machine makes no source a bad one.
_WALL_SECONDS = 60.0
# One request is 50 ms of CPU; more at once would only compete with the calls being served.
_AT_ONCE = 2


class SourceParser:
    """Answers requests, a few at a time, each in its own process."""

    def __init__(self) -> None:
        self._slots = asyncio.Semaphore(_AT_ONCE)

    async def derive(
        self,
        source: str,
        *,
        source_type: str,
        schema: Schema | None = None,
        args_schema: Schema | None = None,
        description: str = "",
        name: str = "",
    ) -> DerivedSchema:
        """See `derive.derive`; raises SchemaError."""
        if len(source) > MAX_SOURCE_BYTES:
            raise SchemaError(
                "SOURCE_TOO_LARGE",
                f"tool source has {len(source)} characters; at most {MAX_SOURCE_BYTES} bytes are accepted",
            )
        about = {
            "source": source,
            "source_type": source_type,
            "schema": schema,
            "args_schema": args_schema,
            "description": description,
            "name": name,
        }
        answer = await self._ask({"operation": "derive", **about})
        if answer is None:
            raise SchemaError(
                "SOURCE_DOES_NOT_PARSE", "the tool's source or schema needs too much time or memory to read"
            )
        return DerivedSchema(**answer)

    async def problems(self, name: str, parameters: Schema, arguments: dict[str, Any]) -> list[str]:
        """Returns `validation.problems`, for schemas that can take for ever; raises SchemaError."""
        request = {"operation": "validate", "name": name, "parameters": parameters, "arguments": arguments}
        answer = await self._ask(request)
        if answer is None:
            return [f"the schema of {name} takes too long to check these arguments against"]
        problems: list[str] = answer["problems"]
        return problems

    async def _ask(self, request: dict[str, Any]) -> dict[str, Any] | None:
        """Returns the child's answer; None where it died or ran out of time. Raises SchemaError."""
        async with self._slots:
            output = await ask(_CHILD, json.dumps(request).encode(), _WALL_SECONDS)
        if not output:
            return None
        answer: dict[str, Any] = json.loads(output)
        if "reason" in answer:
            raise SchemaError(answer["reason"], answer["message"])
        return answer
