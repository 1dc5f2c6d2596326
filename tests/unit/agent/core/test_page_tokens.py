"""Pages and their tokens."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.agent.core.page_tokens import Place, place_of, place_token
from services.common.core.paging import Moment, Page, checked_size, cut, moment_of, moment_token
from services.common.core.refusals import Refused

ONE = UUID(int=1)


@given(st.datetimes(timezones=st.just(UTC)), st.uuids())
def test_tokens_of_moments(time: datetime, object_id: UUID) -> None:
    assert moment_of(moment_token(Moment(time, object_id))) == Moment(time, object_id)


@given(st.integers(-1, 2**31 - 1), st.integers(0, 2**62 - 1))
def test_tokens_of_places(ordinal: int, seq: int) -> None:
    assert place_of(place_token(Place(ordinal, seq))) == Place(ordinal, seq)


@given(st.text(max_size=120))
def test_other_texts_are_no_tokens(text: str) -> None:
    for read in (moment_of, place_of):
        with pytest.raises(Refused) as caught:
            read(text)
        assert caught.value.reason == "PAGE_TOKEN_INVALID"


def test_sizes() -> None:
    assert (checked_size(0, 50), checked_size(1, 50), checked_size(1_000, 50)) == (50, 1, 1_000)
    for size in (-1, 1_001):
        with pytest.raises(Refused, match="1 to 1000"):
            checked_size(size, 50)


def test_a_page_is_cut_from_what_was_found() -> None:
    page = cut([1, 2, 3], Page(2), str)
    assert (page.items, page.next_token) == ((1, 2), "2")
    page = cut([1, 2], Page(2), str)
    assert (page.items, page.next_token) == ((1, 2), "")
    page = cut([1, 2, 3], Page(2, before=ONE), str)
    assert (page.items, page.next_token) == ((2, 1), "2")
    assert cut([], Page(2), str).items == ()


@pytest.mark.parametrize(
    ("page", "scan_ascending"),
    [
        (Page(1, ascending=True), True),
        (Page(1), False),
        (Page(1, before=ONE, ascending=True), False),
        (Page(1, before=ONE), True),
        (Page(1, after=ONE, before=ONE, ascending=True), True),
    ],
)
def test_where_a_page_is_taken_from(page: Page, scan_ascending: bool) -> None:
    assert page.scan_ascending is scan_ascending


def test_microseconds_are_kept() -> None:
    time = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(microseconds=1)
    assert moment_of(moment_token(Moment(time, ONE))).time == time
