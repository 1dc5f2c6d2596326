"""The limited child that parses the source of tools: it holds nothing, may use little, runs no tool code.

One JSON object in on stdin, one out on stdout; requests are those of `source_parser.py`. A crash kills only this
process, and its parent says so to the caller.
"""

import json
import sys
from dataclasses import asdict
from typing import Any

from services.common.process_limits import limit_process
from services.tool_runner.core.schemas.constraints import Schema
from services.tool_runner.core.schemas.derive import derive
from services.tool_runner.core.schemas.errors import SchemaError

_CPU_SECONDS = 4
_MEMORY_BYTES = 512 * 1024 * 1024


def limit() -> None:
    """Limits what this process may use from now on."""
    limit_process(memory_bytes=_MEMORY_BYTES, cpu_seconds=_CPU_SECONDS, open_files=32)


def derived_schema(
    source: str, source_type: str, schema: Schema | None, args_schema: Schema | None, description: str, name: str
) -> dict[str, Any]:
    """Returns the fields of `Derived`. A schema in the request is checked against JSON Schema, too."""
    derived = derive(source, source_type, schema, args_schema, description=description, name=name)
    if schema is not None or args_schema is not None:
        _validation().check_parameters(derived.schema["name"], derived.schema.get("parameters", {}))
    return asdict(derived)


def validate(name: str, parameters: Schema, arguments: dict[str, Any]) -> dict[str, Any]:
    """Returns what is wrong with arguments; see `validation.problems`."""
    return {"problems": _validation().problems(name, parameters, arguments)}


def _validation() -> Any:
    # jsonschema takes longer to import than most requests take, and few need it.
    from services.tool_runner.core.schemas import validation  # noqa: PLC0415

    return validation


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    operation = request.pop("operation")
    try:
        return derived_schema(**request) if operation == "derive" else validate(**request)
    except SchemaError as error:
        return {"reason": error.reason, "message": error.message}
    except (RecursionError, MemoryError):
        return {"reason": "TOO_DEEP", "message": "it is too deeply nested to read"}


def main() -> None:
    """Answers the request on stdin."""
    limit()
    request = json.loads(sys.stdin.buffer.read())
    sys.stdout.write(json.dumps(_answer(request)))


if __name__ == "__main__":
    main()
