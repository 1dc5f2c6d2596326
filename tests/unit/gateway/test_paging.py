"""Handlers whose `page` is made of query parameters."""

import asyncio
import inspect

import pytest
from starlette.responses import Response

from gateway.rest.paging import FIRST_PAGE, ends_before, paged
from loci.common.v1.page_pb2 import ORDER_ASCENDING, ORDER_DESCENDING, PageRequest

asked: list[PageRequest] = []


@paged(50, "asc")
async def whole(name: str, page: PageRequest = FIRST_PAGE, last: bool = False) -> Response:
    asked.append(page)
    return Response()


@paged(10, names="limit after", cursor=int | None)
async def numbered(page: PageRequest = FIRST_PAGE) -> Response:
    asked.append(page)
    return Response()


def test_the_parameters_stand_where_the_page_does() -> None:
    parameters = inspect.signature(whole).parameters
    assert list(parameters) == ["name", "before", "after", "limit", "order", "last"]
    assert parameters["order"].default == "asc"
    assert list(inspect.signature(numbered).parameters) == ["limit", "after"]


@pytest.mark.parametrize(
    ("values", "page"),
    [
        ({}, PageRequest(page_size=50, order=ORDER_ASCENDING)),
        ({"order": "desc", "limit": 5_000}, PageRequest(page_size=1_000, order=ORDER_DESCENDING)),
        ({"after": "a", "before": "b"}, PageRequest(page_size=50, after="a", before="b", order=ORDER_ASCENDING)),
        ({"page": PageRequest(page_size=3)}, PageRequest(page_size=3)),
    ],
)
def test_what_a_handler_is_given(values: dict[str, object], page: PageRequest) -> None:
    asyncio.run(_called(whole("x", **values)))
    assert asked[-1] == page


def test_numbers_are_cursors_too_and_a_route_without_order_has_none() -> None:
    asyncio.run(_called(numbered(after=0)))
    assert asked[-1] == PageRequest(page_size=10, after="0")


def test_a_page_ends_before_an_object_when_it_has_no_other_cursor() -> None:
    assert ends_before(PageRequest(before="b"))
    assert not ends_before(PageRequest(before="b", after="a"))


async def _called(call: object) -> None:
    assert inspect.isawaitable(call)
    await call
