"""Work on what tenants wrote that could exhaust a process: done in a short-lived child with limits."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from services.common.processes import Child
from services.tool_runner.annotations import Schema
from services.tool_runner.schema import MAX_SOURCE_BYTES, SchemaError

_ROOT = Path(__file__).resolve().parents[2]
# -I: neither the environment nor the working directory has a say in the child.
_PROGRAM = (
    f"import sys; sys.path.insert(0, {str(_ROOT)!r}); from services.tool_runner.limited_child import main; main()"
)
_WALL_SECONDS = 10.0
# One request is 50 ms of CPU; more at once would only compete with the calls being served.
_AT_ONCE = 2


class Limited:
    """Answers requests, a few at a time, each in its own process."""

    def __init__(self) -> None:
        self._slots = asyncio.Semaphore(_AT_ONCE)

    async def derive(self, source: str, *, schema: Schema | None = None, args_schema: Schema | None = None) -> Schema:
        """The function schema of the tool in `source`, or `schema` once it is checked; raises SchemaError."""
        if len(source) > MAX_SOURCE_BYTES:
            raise SchemaError(
                "SOURCE_TOO_LARGE",
                f"tool source has {len(source)} characters; at most {MAX_SOURCE_BYTES} bytes are accepted",
            )
        request = {"operation": "derive", "source": source, "schema": schema, "args_schema": args_schema}
        answer = await self._ask(request)
        if answer is None:
            raise SchemaError(
                "SOURCE_DOES_NOT_PARSE", "the tool's source or schema needs too much time or memory to read"
            )
        derived: Schema = answer["schema"]
        return derived

    async def problems(self, name: str, parameters: Schema, arguments: dict[str, Any]) -> list[str]:
        """`arguments.problems` for schemas that can be made to take for ever; raises SchemaError."""
        request = {"operation": "validate", "name": name, "parameters": parameters, "arguments": arguments}
        answer = await self._ask(request)
        if answer is None:
            return [f"the schema of {name} takes too long to check these arguments against"]
        found: list[str] = answer["problems"]
        return found

    async def _ask(self, request: dict[str, Any]) -> dict[str, Any] | None:
        """The child's answer; None where it died or ran out of time. Raises SchemaError."""
        async with self._slots:
            output = await _run(json.dumps(request).encode())
        if not output:
            return None
        answer: dict[str, Any] = json.loads(output)
        if "reason" in answer:
            raise SchemaError(answer["reason"], answer["message"])
        return answer


async def _run(request: bytes) -> bytes:
    command = (sys.executable, "-I", "-B", "-c", _PROGRAM)
    child = await Child.start(*command, environment={}, errors=subprocess.DEVNULL)
    try:
        async with asyncio.timeout(_WALL_SECONDS):
            await child.send(request)
            child.end_input()
            output = await child.reader.read()
            status = await child.wait()
    except (TimeoutError, ConnectionError):
        return b""
    finally:
        await child.end()
    return output if status == 0 else b""
