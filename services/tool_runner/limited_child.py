"""The limited child in which what tenants wrote is parsed: it holds nothing, may use little, runs no tool code.

One JSON object in on stdin, one out on stdout; requests are those of `limited.py`. A crash kills only this
process, and its parent says so to the caller.
"""

import contextlib
import json
import resource
import sys
from typing import Any

from services.tool_runner.annotations import Schema
from services.tool_runner.schema import SchemaError, check_function, check_schema, derive_schema

_CPU_SECONDS = 4
_MEMORY_BYTES = 512 * 1024 * 1024


def _limit() -> None:
    for what, value in (
        (resource.RLIMIT_CPU, _CPU_SECONDS),
        (resource.RLIMIT_AS, _MEMORY_BYTES),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, 32),
    ):
        with contextlib.suppress(ValueError, OSError):  # not every system has every limit
            resource.setrlimit(what, (value, value))


def derive(source: str, schema: Schema | None, args_schema: Schema | None) -> dict[str, Any]:
    """The tool's schema: derived, or the given one once it is found sound."""
    given = schema is not None or args_schema is not None
    if schema is None:
        schema = derive_schema(source, args_schema)
    else:
        check_schema(schema)
        check_function(source, schema["name"])
    if given:
        _arguments().check_parameters(schema["name"], schema.get("parameters", {}))
    return {"schema": schema}


def validate(name: str, parameters: Schema, arguments: dict[str, Any]) -> dict[str, Any]:
    """What is wrong with arguments; see `arguments.problems`."""
    return {"problems": _arguments().problems(name, parameters, arguments)}


def _arguments() -> Any:
    # jsonschema takes longer to import than most requests take, and few need it.
    from services.tool_runner import arguments  # noqa: PLC0415

    return arguments


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    operation = request.pop("operation")
    try:
        return derive(**request) if operation == "derive" else validate(**request)
    except SchemaError as error:
        return {"reason": error.reason, "message": error.message}
    except (RecursionError, MemoryError):
        return {"reason": "TOO_DEEP", "message": "it is too deeply nested to read"}


def main() -> None:
    """Read, answer."""
    _limit()
    request = json.loads(sys.stdin.buffer.read())
    sys.stdout.write(json.dumps(_answer(request)))


if __name__ == "__main__":
    main()
