"""Pages of lists: the query parameters that ask for one, and the PageRequest that services take."""

import inspect
from collections.abc import Awaitable, Callable, Sequence
from functools import wraps
from typing import Annotated, Any, Literal, TypeVar

from fastapi import Query
from pydantic import AfterValidator
from pydantic_core import PydanticCustomError
from starlette.responses import Response

from gateway.rest.responses import json_response
from loci.common.v1.page_pb2 import ORDER_ASCENDING, ORDER_DESCENDING, PageRequest
from services.common.errors import InvalidArgument, NotFound
from services.common.ids import from_public

T = TypeVar("T")
_UNKNOWN_CURSOR = "CURSOR_NOT_FOUND"
MOST_PER_PAGE = 1_000
# The default of a handler's `page`, which says where its parameters stand; `paged` always gives it another.
FIRST_PAGE = PageRequest()
Handler = Callable[..., Awaitable[Response]]


def _an_id_if_given(value: str | None) -> str | None:
    """Answers 422 for a text that is no id at all. Whether it is one of the list's objects is for those to say."""
    if value is not None:
        try:
            from_public(value[:-37], value)
        except InvalidArgument:
            sentence = f"{value[:80]!r} is no id: expected `<prefix>-<uuid>`"
            raise PydanticCustomError("invalid_cursor", "{sentence}", {"sentence": sentence}) from None
    return value


Order = Literal["asc", "desc"]
Cursor = Annotated[
    str | None,
    Query(description="An id: the page begins after, or ends before, this object."),
    AfterValidator(_an_id_if_given),
]
Limit = Annotated[
    int | None, Query(ge=0, description="Most objects of the page, 0 for none; 1,000 and above mean 1,000.")
]
LimitFromOne = Annotated[int | None, Query(ge=1, description="Most objects of the page; 1,000 and above mean 1,000.")]
PageToken = Annotated[str, Query(description="`next_page_token` of the page before.")]


def paged(
    default_size: int,
    default_order: Order = "desc",
    names: str = "before after limit order",
    cursor: Any = Cursor,
    empty: Any = (),
    zero: Literal["none", "all", "refused"] = "none",
    unknown_cursor: Literal["ignored", "empty"] = "ignored",
) -> Callable[[Handler], Handler]:
    """Returns a decorator by which a handler's parameter `page` is made of query parameters, in its place.

    `names`: the parameters that the route has, in the order of its document; without `order` the page has none, and
    the service's default holds. `cursor`: the type of `before` and `after`. `empty`: the answer to limit=0, for which
    nobody is asked, unless `zero` says that it means as many as there may be, or is refused. A cursor that names
    nothing is ignored, or leaves nothing. Handlers that call one another pass `page` by its name.
    """
    parameters_by_name = {
        "before": (cursor, None),
        "after": (cursor, None),
        "limit": (LimitFromOne if zero == "refused" else Limit, None),
        "order": (Order, default_order),
        "page_token": (PageToken, ""),
        # The older name of `after`.
        "cursor": (cursor, None),
    }
    own = [_parameter(name, *parameters_by_name[name]) for name in names.split()]

    def decorate(handler: Handler) -> Handler:
        signature = inspect.signature(handler)
        parameters = [
            each
            for name, parameter in signature.parameters.items()
            for each in (own if name == "page" else [parameter.replace(kind=parameter.KEYWORD_ONLY)])
        ]

        @wraps(handler)
        async def handle(*arguments: Any, **values: Any) -> Response:
            if "page" not in values:
                parameters = {each.name: values.pop(each.name, each.default) for each in own}
                if parameters.get("limit") == 0:
                    if zero == "none":
                        return json_response(empty)
                    parameters["limit"] = MOST_PER_PAGE
                values["page"] = page_request(default_size, **parameters)
            while True:
                try:
                    return await handler(*arguments, **values)
                except NotFound as error:
                    if unknown_cursor == "empty" and error.reason == _UNKNOWN_CURSOR:
                        return json_response(empty)
                    if not _drop_cursor(values["page"], error):
                        raise

        handle.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        return handle

    return decorate


def _drop_cursor(page: PageRequest, error: NotFound) -> bool:
    """Returns whether the page had the cursor that the service does not know; it has it no more."""
    field: Any = error.metadata.get("field", "")
    if error.reason != _UNKNOWN_CURSOR or field not in ("after", "before") or not page.HasField(field):
        return False
    page.ClearField(field)
    return True


def page_request(
    default_size: int,
    *,
    before: str | int | None = None,
    after: str | int | None = None,
    cursor: str | None = None,
    limit: int | None = None,
    order: Order | None = None,
    page_token: str = "",
) -> PageRequest:
    """Returns the page as services take it."""
    page = PageRequest(page_size=page_size(limit, default_size), page_token=page_token)
    if before is not None:
        page.before = str(before)
    if (start := cursor if after is None else after) is not None:
        page.after = str(start)
    if order is not None:
        set_order(page, ascending=order == "asc")
    return page


def set_order(page: PageRequest, *, ascending: bool) -> None:
    """Sets the order of a page whose route names it otherwise than by `order`."""
    page.order = ORDER_ASCENDING if ascending else ORDER_DESCENDING


def descending(page: PageRequest) -> bool:
    """Returns whether the largest or newest object comes first."""
    return page.order == ORDER_DESCENDING


def ends_before(page: PageRequest) -> bool:
    """Returns whether the page is the one that ends before an object; the next page comes before it."""
    return page.HasField("before") and not page.HasField("after")


def page_size(limit: int | None, default: int) -> int:
    """Returns how many objects a page has at most."""
    return min(default if limit is None else limit, MOST_PER_PAGE)


def one_page(items: Sequence[T], page: PageRequest, *, key: Callable[[T], str]) -> list[T]:
    """Returns the page of a list that is there as a whole, in its order. A cursor that names nothing is ignored."""
    keys = [key(item) for item in items]
    start, stop = 0, len(items)
    if page.HasField("after"):
        start = keys.index(page.after) + 1 if page.after in keys else 0
    if page.HasField("before"):
        stop = keys.index(page.before) if page.before in keys else stop
    chosen = list(items[start:stop])
    return chosen[-page.page_size :] if ends_before(page) else chosen[: page.page_size]


def _parameter(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
