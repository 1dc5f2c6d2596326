"""What a list asks for <- protobuf."""

from typing import Any
from uuid import UUID

from services.agent.admin.lists import checked_size
from services.common.ids import from_public
from services.common.paging import Page


def page(request: Any, prefix: str, default: int) -> Page:
    """The page that a list request asks for; its cursors are ids with `prefix`. Raises Refused, InvalidArgument.

    Lists that are newest first by default have a field `ascending`, the others `descending`.
    """
    return Page(
        size=checked_size(request.page_size, default),
        token=request.page_token,
        after=_cursor(request, "after", prefix),
        before=_cursor(request, "before", prefix),
        ascending=not request.descending if hasattr(request, "descending") else request.ascending,
    )


def _cursor(request: Any, name: str, prefix: str) -> UUID | None:
    return from_public(prefix, getattr(request, name)) if request.HasField(name) else None
