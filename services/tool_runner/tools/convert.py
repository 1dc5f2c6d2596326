"""Tools: Protobuf to plain values and back."""

from collections.abc import Sequence
from typing import Any, cast
from uuid import UUID

from loci.tool.v1 import tool_pb2
from loci.tool.v1 import tool_service_pb2 as tool_service_pb
from services.common.codec import Codec
from services.common.core.refusals import Refused
from services.common.errors import InvalidArgument
from services.common.ids import from_public
from services.tool_runner.core.model import DEFAULT_RETURN_CHARS, Tool, ToolChanges, ToolType
from services.tool_runner.core.schemas.json_fields import json_array, json_object
from services.tool_runner.tools.model import ToolFilter

_TOOLS = Codec(Tool, tool_pb2.Tool, leave=("mcp_tool_name",))
_MOST_IDS, _MOST_NAMES = 10_000, 1_000
# Fields of ToolDraft by their names in ToolChanges.
_DRAFT = {
    "source_type": "source_type",
    "source_code": "source_code",
    "json_schema_json": "json_schema",
    "args_json_schema_json": "args_json_schema",
    "description": "description",
    "tags": "tags",
    "return_char_limit": "return_char_limit",
    "default_requires_approval": "default_requires_approval",
    "enable_parallel_execution": "enable_parallel_execution",
    "idempotent": "idempotent",
    "metadata_json": "metadata",
    "pip_requirements_json": "pip_requirements",
    "npm_requirements_json": "npm_requirements",
    "project_id": "project_id",
    "network_json": "network",
}


def tool_id(text: str) -> UUID:
    """Returns the UUID of `tool-<uuid>`."""
    return from_public("tool", text)


def draft(message: tool_service_pb.ToolDraft) -> ToolChanges:
    """Returns the fields that are set. Raises Refused."""
    return changes(message, [field.name for field, _ in message.ListFields()])


def changes(message: tool_service_pb.ToolDraft, mask: Sequence[str]) -> ToolChanges:
    """Returns the new values of the fields in `mask`; unset ones get their default. Raises InvalidArgument, Refused."""
    values: dict[str, Any] = {}
    for name in mask:
        if name not in _DRAFT:
            raise InvalidArgument(f"a tool has no field {name!r} to update", reason="UPDATE_MASK_INVALID")
        values[_DRAFT[name]] = _value(message, name)
    return cast(ToolChanges, values)


def _value(message: tool_service_pb.ToolDraft, name: str) -> Any:
    value = getattr(message, name)
    match name:
        case "tags":
            return tuple(clean(tag) for tag in value)
        case "source_type":
            return value or "python"
        case "return_char_limit":
            return value if message.HasField(name) else DEFAULT_RETURN_CHARS
        case "metadata_json":
            return json_object(value or "{}", "metadata")
        case "args_json_schema_json":
            return args_json_schema(value)
        case "json_schema_json":
            return value or None
        case "pip_requirements_json" | "npm_requirements_json":
            return json_array(value, name.removesuffix("_json"))
        case "network_json":
            return "" if value.strip() in ("", "{}", "null") else json_object(value, "network")
        case "description" | "project_id":
            return clean(value) if message.HasField(name) else None
    return value


def args_json_schema(text: str) -> str | None:
    """Returns the text, or None for none; the reference's clients send {} for that. Raises Refused."""
    return None if text.strip() in ("", "{}", "null") else json_object(text, "args_json_schema")


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
