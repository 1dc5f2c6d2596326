"""Page tokens and sizes."""

from datetime import UTC, datetime
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.common.core.paging import Moment, Page, checked_size, moment_of, moment_token
from services.common.core.refusals import Refused
from services.memory.blocks.model import version_of


@given(st.datetimes(timezones=st.just(UTC)), st.uuids())
def test_a_token_is_a_position(created_at: datetime, object_id: UUID) -> None:
    position = Moment(created_at, object_id)
    assert moment_of(moment_token(position)) == position


@pytest.mark.parametrize("token", ["x", "é", "eA==", "MS4x", "OTk5OTk5OTk5OTk5OTk5OTk5OTk5LjE=", "\0"])
def test_other_tokens_are_refused(token: str) -> None:
    with pytest.raises(Refused, match="page token"):
        moment_of(token)


@pytest.mark.parametrize("token", ["x", "-1", "1.0", "٣", "1" * 30])
def test_other_versions_are_refused(token: str) -> None:
    with pytest.raises(Refused, match="page token"):
        version_of(token)
    assert version_of("17") == 17


def test_sizes() -> None:
    assert (checked_size(0, 50), checked_size(1, 50), checked_size(1_000, 50)) == (50, 1, 1_000)
    for size in (-1, 1_001):
        with pytest.raises(Refused):
            checked_size(size, 50)


def test_a_page_is_taken_from_its_end_when_only_an_end_is_given() -> None:
    cursor = UUID(int=1)
    assert Page(size=1, before=cursor).backwards
    assert not Page(size=1, before=cursor, after=cursor).backwards
    assert not Page(size=1, after=cursor).backwards
