"""What a list asks for <- protobuf."""

from typing import Any

from loci.agent.v1 import agent_service_pb2
from services.agent.convert.fields import optional_id
from services.agent.core.page_tokens import checked_size
from services.common.paging import Page, TagPage
from services.common.storable import storable

_TAGS_PER_PAGE = 50


def page(request: Any, prefix: str, default: int) -> Page:
    """The page that a list request asks for; its cursors are ids with `prefix`. Raises Refused, InvalidArgument.

    Lists that are newest first by default have a field `ascending`, the others `descending`.
    """
    return Page(
        size=checked_size(request.page_size, default),
        token=request.page_token,
        after=optional_id(request, "after", prefix),
        before=optional_id(request, "before", prefix),
        ascending=not request.descending if hasattr(request, "descending") else request.ascending,
    )


def tag_page(request: agent_service_pb2.ListAgentTagsRequest) -> TagPage:
    """The page of tags that a request asks for. Raises Refused (PAGE_SIZE_INVALID)."""
    return TagPage(
        checked_size(request.page_size, _TAGS_PER_PAGE),
        after=storable(request.after) if request.HasField("after") else None,
        before=storable(request.before) if request.HasField("before") else None,
        ascending=not request.descending,
        query_text=storable(request.query_text),
    )
