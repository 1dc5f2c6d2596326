"""Tools: Protobuf to plain values and back."""

from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any
from uuid import UUID

from loci.tool.v1 import tool_pb2
from loci.tool.v1 import tool_service_pb2 as tool_service_pb
from services.common.codec import Codec
from services.common.core.refusals import Refused
from services.common.errors import InvalidArgument
from services.common.ids import from_public
from services.tool_runner.core.model import Tool, ToolChanges, ToolSettings, ToolType
from services.tool_runner.core.schemas.json_fields import json_array, json_object
from services.tool_runner.tools.model import ToolFilter

_MOST_IDS, _MOST_NAMES = 10_000, 1_000
# Where a client gives none, these follow from the source.
_DERIVED = frozenset({"json_schema", "description"})
_DEFAULTS = ToolSettings()
_NAMES = tuple(field.name for field in fields(ToolSettings))


def tool_id(text: str) -> UUID:
    """Returns the UUID of `tool-<uuid>`."""
    return from_public("tool", text)


def draft(message: tool_pb2.Tool) -> ToolChanges:
    """Returns the fields that are set. Raises Refused."""
    return _values(message, None)


def changes(message: tool_pb2.Tool, mask: Sequence[str]) -> ToolChanges:
    """Returns the new values of the fields in `mask`; unset ones get their default. Raises InvalidArgument, Refused."""
    return _values(message, mask)


def _values(message: tool_pb2.Tool, mask: Sequence[str] | None) -> ToolChanges:
    for text in (message.description, message.project_id, *message.tags):
        clean(text)
    values = _TOOLS.values(message, mask)
    if "source_code" in values:
        # As it came: the parser of its language refuses a NUL.
        values["source_code"] = message.source_code
    # In the order of the fields, in which a refusal names them.
    return {name: _default(name) if values[name] is None else values[name] for name in _NAMES if name in values}


def _default(name: str) -> Any:
    return None if name in _DERIVED else getattr(_DEFAULTS, name)


def args_json_schema(text: str) -> str | None:
    """Returns the text, or None for none; the reference's clients send {} for that. Raises Refused."""
    return None if text.strip() in ("", "{}", "null") else json_object(text, "args_json_schema")


def _requirements(name: str) -> Callable[[str], str]:
    return lambda text: json_array(text, name)


def _network(text: str) -> str:
    return "" if text.strip() in ("", "{}", "null") else json_object(text, "network")


def _refuse(name: str, problem: str) -> Refused:
    return Refused("TOOL_INVALID", f"{name} {problem}")


def clean(text: str) -> str:
    """Returns the text, which Postgres takes. Raises Refused (TOOL_INVALID)."""
    if "\x00" in text:
        raise Refused("TOOL_INVALID", "texts may not hold the character NUL")
    return text


def tool_filter(request: tool_service_pb.ListToolsRequest) -> ToolFilter:
    """Raises InvalidArgument (INVALID_ID), Refused."""
    return ToolFilter(
        name=clean(request.name) if request.HasField("name") else None,
        names=tuple(clean(name) for name in request.names),
        ids=tuple(tool_id(text) for text in request.tool_ids),
        types=tuple(tool_type(number) for number in request.tool_types),
        excluded_types=tuple(tool_type(number) for number in request.exclude_tool_types),
        search=clean(request.search) if request.HasField("search") else None,
    )


def batch(request: tool_service_pb.BatchGetToolsRequest) -> tuple[list[UUID], list[str]]:
    """Ids and names. Raises InvalidArgument."""
    if len(request.tool_ids) > _MOST_IDS or len(request.names) > _MOST_NAMES:
        raise InvalidArgument(f"ask for at most {_MOST_IDS} ids and {_MOST_NAMES} names", reason="PAGE_SIZE_INVALID")
    return [tool_id(text) for text in request.tool_ids], [clean(name) for name in request.names]


def tool_type(number: "tool_pb2.ToolType.ValueType") -> ToolType:
    """Raises InvalidArgument (TOOL_TYPE_INVALID)."""
    try:
        return ToolType(tool_pb2.ToolType.Name(number).removeprefix("TOOL_TYPE_").lower())
    except ValueError:
        raise InvalidArgument(f"{number} is not a type of tools", reason="TOOL_TYPE_INVALID") from None


def tool_message(tool: Tool) -> tool_pb2.Tool:
    """Returns a stored tool."""
    return _TOOLS.encode(tool)


_TOOLS = Codec(
    Tool,
    tool_pb2.Tool,
    refuse=_refuse,
    parsers={
        "json_schema": lambda text: text or None,
        "args_json_schema": args_json_schema,
        "metadata": lambda text: json_object(text or "{}", "metadata"),
        "pip_requirements": _requirements("pip_requirements"),
        "npm_requirements": _requirements("npm_requirements"),
        "network": _network,
    },
)
