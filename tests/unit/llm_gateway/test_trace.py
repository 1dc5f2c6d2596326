"""The record of a call, within its bounds."""

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.llm_gateway.core.errors import LlmServerError
from services.llm_gateway.core.trace import METADATA_KEY, Trace, shorten, tracing
from tests.unit.llm_gateway.builders import request


def test_what_was_sent_and_what_came() -> None:
    trace = Trace(b'{"model":"m"}')
    assert orjson.loads(trace.text()) == {"request": {"model": "m"}, "response": None}
    trace.response = b"<html>\xff"
    assert orjson.loads(trace.text())["response"] == "<html>\ufffd"
    trace.events += [b'{"a":1}', b"{broken"]
    assert orjson.loads(trace.text())["response"] == [{"a": 1}, "{broken"]


def test_the_longest_strings_are_cut_first() -> None:
    value = {"request": {"messages": ["a" * 900, "b" * 90_000], "n": 5}, "response": "c" * 500}
    cut = orjson.loads(shorten(value, 20_000))
    assert cut["request"]["messages"][0] == "a" * 900
    assert cut["response"] == "c" * 500
    assert cut["request"]["n"] == 5
    long = cut["request"]["messages"][1]
    assert long.endswith("b...cut")
    assert 8_000 < len(long) < 20_000


def test_many_small_things_are_cut_as_text() -> None:
    cut = orjson.loads(shorten({"request": ["word"] * 10_000, "response": {"n": [1] * 50_000}}, 20_000))
    assert cut["request"].startswith('["word","word"')
    assert cut["response"].endswith("1,...cut")


@given(
    st.recursive(
        st.text() | st.integers(-5, 5) | st.none(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=60,
    )
)
def test_it_is_always_json_and_never_too_long(value: Any) -> None:
    text = shorten({"request": value, "response": value}, 300)
    assert len(text.encode()) <= 300
    assert orjson.loads(text).keys() == {"request", "response"}


@pytest.mark.parametrize(("wanted", "size", "kept"), [(True, 100, True), (True, 5_000, False), (False, 100, False)])
def test_an_error_takes_it_along_where_it_is_wanted_and_fits(wanted: bool, size: int, kept: bool) -> None:
    def fail() -> None:
        with tracing(request(trace=wanted), orjson.dumps("x" * size)) as trace:
            assert (trace is not None) is wanted
            raise LlmServerError("broken")

    with pytest.raises(LlmServerError) as caught:
        fail()
    assert (METADATA_KEY in caught.value.metadata) is kept
