"""`loci.common.v1.PageRequest` as a `paging.Page`. Each list names its default size and order."""

from collections.abc import Callable
from functools import partial
from typing import TypeVar

from loci.common.v1 import page_pb2
from services.common.core.paging import Page, PageBy, checked_size
from services.common.core.refusals import Refused
from services.common.ids import from_public

K = TypeVar("K")


def page_by(
    request: page_pb2.PageRequest, cursor: Callable[[str], K], default_size: int, *, ascending: bool = False
) -> PageBy[K]:
    """Returns the page; `cursor` parses its cursors and raises what it likes; `ascending` is the list's default order.

    Raises Refused (PAGE_SIZE_INVALID).
    """
    if request.order != page_pb2.ORDER_UNSPECIFIED:
        ascending = request.order == page_pb2.ORDER_ASCENDING
    return PageBy(
        size=checked_size(request.page_size, default_size),
        token=request.page_token,
        after=cursor(request.after) if request.HasField("after") else None,
        before=cursor(request.before) if request.HasField("before") else None,
        ascending=ascending,
    )


def page_by_id(request: page_pb2.PageRequest, prefix: str, default_size: int, *, ascending: bool = False) -> Page:
    """Returns the page; its cursors are ids with `prefix`. Raises Refused, InvalidArgument (INVALID_ID)."""
    page = page_by(request, partial(from_public, prefix), default_size, ascending=ascending)
    return Page(page.size, page.token, page.after, page.before, page.ascending)


def allow(request: page_pb2.PageRequest, *names: str) -> None:
    """Raises Refused (PAGE_FIELD_UNSUPPORTED) where the page has a field that is not one of `names`."""
    for field, _ in request.ListFields():
        if field.name not in names:
            raise Refused("PAGE_FIELD_UNSUPPORTED", f"this list takes {', '.join(names)}, not {field.name}")
