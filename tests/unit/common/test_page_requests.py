"""PageRequests as pages: defaults, cursors, and fields that a list does not take."""

from uuid import UUID

import pytest

from loci.common.v1.page_pb2 import ORDER_ASCENDING, ORDER_DESCENDING, PageRequest
from services.common.core.paging import Page, PageBy
from services.common.core.refusals import Refused
from services.common.errors import InvalidArgument
from services.common.page_requests import allow, page_by, page_by_id

ONE = UUID("0b5f2a9c-7f4e-4a52-9c6e-111111111111")


def test_an_empty_request_has_the_defaults_of_the_list() -> None:
    assert page_by_id(PageRequest(), "block", 50) == Page(50)
    assert page_by_id(PageRequest(), "block", 50, ascending=True) == Page(50, ascending=True)


def test_every_field_counts() -> None:
    request = PageRequest(page_size=7, page_token="t", after=f"block-{ONE}", before=f"block-{ONE}")
    assert page_by_id(request, "block", 50) == Page(7, "t", ONE, ONE)
    assert page_by(PageRequest(after="b", before=""), str, 50) == PageBy(50, after="b", before="")


@pytest.mark.parametrize("ascending", [True, False])
def test_the_request_chooses_the_order(ascending: bool) -> None:
    order = ORDER_ASCENDING if ascending else ORDER_DESCENDING
    assert page_by_id(PageRequest(order=order), "block", 50, ascending=not ascending).ascending is ascending


def test_bad_pages_are_refused() -> None:
    with pytest.raises(Refused) as size:
        page_by_id(PageRequest(page_size=1_001), "block", 50)
    with pytest.raises(InvalidArgument) as cursor:
        page_by_id(PageRequest(after=f"agent-{ONE}"), "block", 50)
    assert (size.value.reason, cursor.value.reason) == ("PAGE_SIZE_INVALID", "INVALID_ID")


def test_a_list_takes_the_fields_that_it_names() -> None:
    allow(PageRequest(page_size=3, after="x"), "page_size", "after")
    with pytest.raises(Refused, match="this list takes page_size, after, not before") as refused:
        allow(PageRequest(before="x"), "page_size", "after")
    assert refused.value.reason == "PAGE_FIELD_UNSUPPORTED"
