"""Derives a tool's schema in a limited child process, because hostile source can exhaust a parser."""

import asyncio
import json
import sys
from pathlib import Path

from services.tool_runner.annotations import Schema
from services.tool_runner.processes import end_process
from services.tool_runner.schema import MAX_SOURCE_BYTES, SchemaError

_ROOT = Path(__file__).resolve().parents[2]
# -I and -S: neither the environment, the working directory nor site-packages have a say in the child.
_PROGRAM = (
    f"import sys; sys.path.insert(0, {str(_ROOT)!r}); "
    "from services.tool_runner.parsing_child import main; main()"
)
_WALL_SECONDS = 10.0
# One parse is 40 ms of CPU; more at once would only compete with the calls being served.
_AT_ONCE = 2


class LimitedParser:
    """Parses sources, a few at a time, each in its own short-lived process."""

    def __init__(self) -> None:
        self._slots = asyncio.Semaphore(_AT_ONCE)

    async def derive(self, source: str, args_schema: Schema | None = None) -> Schema:
        """`schema.derive_schema` behind limits of time and memory; raises SchemaError."""
        if len(source) > MAX_SOURCE_BYTES:
            raise SchemaError(
                "SOURCE_TOO_LARGE",
                f"tool source has {len(source)} characters; at most {MAX_SOURCE_BYTES} bytes are accepted",
            )
        request = json.dumps({"source": source, "args_json_schema": args_schema}).encode()
        async with self._slots:
            answer = await _ask(request)
        if answer is None:
            raise SchemaError("SOURCE_DOES_NOT_PARSE", "tool source needs too much time or memory to parse")
        if "schema" not in answer:
            raise SchemaError(answer["reason"], answer["message"])
        schema: Schema = answer["schema"]
        return schema


async def _ask(request: bytes) -> Schema | None:
    """The child's answer; None where it died or ran out of time."""
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-I", "-S", "-B", "-c", _PROGRAM),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={},
    )
    try:
        async with asyncio.timeout(_WALL_SECONDS):
            output, _ = await child.communicate(request)
    except TimeoutError:
        return None
    finally:
        await end_process(child)
    if child.returncode != 0:
        return None
    answer: Schema = json.loads(output)
    return answer
