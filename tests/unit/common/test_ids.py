"""UUIDv7 by RFC 9562, and public ids."""

import threading
import time
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.common import ids
from services.common.errors import InvalidArgument
from services.common.ids import from_public, ids_in, optional_id, to_public, uuid7


def test_version_variant_and_time() -> None:
    before = time.time_ns() // 1_000_000
    value = uuid7()
    after = time.time_ns() // 1_000_000
    assert value.version == 7
    assert value.variant == "specified in RFC 4122"
    assert before <= value.int >> 80 <= after + 1


def test_ids_rise_strictly() -> None:
    made = [uuid7() for _ in range(20_000)]
    assert made == sorted(set(made))


def test_ids_rise_when_the_clock_goes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    first = uuid7()
    monkeypatch.setattr(time, "time_ns", lambda: 1_000_000_000)
    second = uuid7()
    assert second > first
    assert second.int >> 80 == first.int >> 80


def test_a_full_counter_carries_into_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    first = uuid7()
    monkeypatch.setattr(ids, "_last_ms", (1 << 47))
    monkeypatch.setattr(ids, "_counter", (1 << 42) - 1)
    second, third = uuid7(), uuid7()
    assert first < second < third
    assert second.int >> 80 == (1 << 47) + 1
    assert (second.version, second.variant) == (7, "specified in RFC 4122")


def test_threads_never_get_the_same_id() -> None:
    made: list[UUID] = []
    threads = [threading.Thread(target=lambda: made.extend(uuid7() for _ in range(2_000))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(made)) == 8_000


@given(st.uuids())
def test_public_ids_round_trip_for_any_version(value: UUID) -> None:
    assert from_public("block", to_public("block", value)) == value
    assert from_public("agent", f"agent-{str(value).upper()}") == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "block",
        "block-",
        "block-xyz",
        "agent-123e4567-e89b-42d3-8456-426614174000",
        "123e4567-e89b-42d3-8456-426614174000",
        "block-123e4567e89b42d38456426614174000",
        "block-123e4567-e89b-42d3-8456-42661417400g",
        "block-123e4567-e89b-42d3-8456-4266141740001",
        "block-{123e4567-e89b-42d3-8456-42661417400}",
        "block-123e4567-e89b-42d3-8456-42661417400\N{ARABIC-INDIC DIGIT ONE}",
        "block-" + "1" * 5000,
    ],
)
def test_anything_else_is_refused_with_the_expected_form(text: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        from_public("block", text)
    assert caught.value.reason == "INVALID_ID"
    assert caught.value.metadata == {"prefix": "block"}
    assert "block-<uuid>" in caught.value.message
    assert len(caught.value.message) < 300


def test_an_empty_text_is_no_id_and_lists_keep_their_order() -> None:
    one, two = UUID(int=1), UUID(int=2)
    assert optional_id("block", "") is None
    assert optional_id("block", f"block-{one}") == one
    assert ids_in("block", [f"block-{two}", f"block-{one}"]) == (two, one)
    with pytest.raises(InvalidArgument):
        ids_in("block", [f"agent-{one}"])
