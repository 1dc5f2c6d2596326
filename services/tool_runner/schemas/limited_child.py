"""The limited child in which what tenants wrote is parsed: it holds nothing, may use little, runs no tool code.

One JSON object in on stdin, one out on stdout; requests are those of `limited.py`. A crash kills only this
process, and its parent says so to the caller.
"""

import json
import sys
from dataclasses import asdict
from typing import Any

from services.common.self_limits import limit_self
from services.tool_runner.schemas import deriving
from services.tool_runner.schemas.constraints import Schema
from services.tool_runner.schemas.faults import SchemaError

_CPU_SECONDS = 4
_MEMORY_BYTES = 512 * 1024 * 1024


def limit() -> None:
    """What this process may use, from now on."""
    limit_self(memory_bytes=_MEMORY_BYTES, cpu_seconds=_CPU_SECONDS, open_files=32)


def derive(source: str, source_type: str, schema: Schema | None, args_schema: Schema | None) -> dict[str, Any]:
    """See `deriving.derive`. A schema that was given is one of JSON Schema besides."""
    derived = deriving.derive(source, source_type, schema, args_schema)
    if schema is not None or args_schema is not None:
        _arguments().check_parameters(derived.schema["name"], derived.schema.get("parameters", {}))
    return asdict(derived)


def validate(name: str, parameters: Schema, arguments: dict[str, Any]) -> dict[str, Any]:
    """What is wrong with arguments; see `arguments.problems`."""
    return {"problems": _arguments().problems(name, parameters, arguments)}


def _arguments() -> Any:
    # jsonschema takes longer to import than most requests take, and few need it.
    from services.tool_runner.schemas import arguments  # noqa: PLC0415

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
    limit()
    request = json.loads(sys.stdin.buffer.read())
    sys.stdout.write(json.dumps(_answer(request)))


if __name__ == "__main__":
    main()
