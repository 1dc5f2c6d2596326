"""The limited child in which tool source is parsed: it holds nothing, may use little, and runs no tool code.

One JSON object in on stdin (`source`, `args_json_schema`), one out on stdout: `schema`, or `reason` and
`message`. A crash of the parser kills only this process; `parsing.py` says so to the caller.
"""

import json
import resource
import sys

from services.tool_runner.annotations import Schema
from services.tool_runner.schema import SchemaError, derive_schema

_CPU_SECONDS = 4
_MEMORY_BYTES = 512 * 1024 * 1024


def _limit() -> None:
    for what, value in (
        (resource.RLIMIT_CPU, _CPU_SECONDS),
        (resource.RLIMIT_AS, _MEMORY_BYTES),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, 8),
    ):
        resource.setrlimit(what, (value, value))


def _answer(source: str, args_schema: Schema | None) -> dict[str, object]:
    try:
        return {"schema": derive_schema(source, args_schema)}
    except SchemaError as error:
        return {"reason": error.reason, "message": error.message}
    except (RecursionError, MemoryError):
        return {"reason": "SOURCE_DOES_NOT_PARSE", "message": "tool source is too deeply nested to read"}


def main() -> None:
    """Read, derive, answer."""
    _limit()
    request = json.loads(sys.stdin.buffer.read())
    answer = _answer(request["source"], request["args_json_schema"])
    sys.stdout.write(json.dumps(answer))


if __name__ == "__main__":
    main()
