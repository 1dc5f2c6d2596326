"""Searches for tools: Protobuf to plain values and back."""

from collections.abc import Sequence

from loci.tool.v1 import tool_pb2
from loci.tool.v1 import tool_service_pb2 as tool_service_pb
from services.common.core.refusals import Refused
from services.tool_runner.core.model import Tool
from services.tool_runner.tools.convert import clean, tool_message, tool_type
from services.tool_runner.tools.search.model import DEFAULT_RESULTS, Mode, Place, ToolQuery, to_embed

_MODES = {
    tool_service_pb.SEARCH_MODE_UNSPECIFIED: Mode.HYBRID,
    tool_service_pb.SEARCH_MODE_VECTOR: Mode.VECTOR,
    tool_service_pb.SEARCH_MODE_TEXT: Mode.TEXT,
    tool_service_pb.SEARCH_MODE_HYBRID: Mode.HYBRID,
}
_NUMBERS = {mode: number for number, mode in _MODES.items()}


def query(request: tool_service_pb.SearchToolsRequest) -> ToolQuery:
    """Raises Refused, InvalidArgument (TOOL_TYPE_INVALID)."""
    if request.mode not in _MODES:
        raise Refused("TOOL_SEARCH_INVALID", f"{request.mode} is no way to search")
    return ToolQuery(
        text=request.query,
        mode=_MODES[request.mode],
        tags=tuple(clean(tag) for tag in request.tags),
        types=tuple(tool_type(number) for number in request.tool_types),
        limit=request.limit or DEFAULT_RESULTS,
    )


def response(hits: Sequence[tuple[Tool, Place]], mode: Mode) -> tool_service_pb.SearchToolsResponse:
    """Returns what was found, and how."""
    return tool_service_pb.SearchToolsResponse(hits=[_hit(*hit) for hit in hits], mode=_NUMBERS[mode])


def _hit(tool: Tool, place: Place) -> tool_pb2.ToolHit:
    return tool_pb2.ToolHit(
        tool=tool_message(tool),
        score=place.score,
        text_rank=place.text_rank,
        vector_rank=place.vector_rank,
        embedded_text=to_embed(tool),
    )
