"""Queries over tools, the text of a tool that is embedded, and the fusion of rankings."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

import pytest

from services.common.core.refusals import Refused
from services.tool_runner.core.model import Tool, ToolType
from services.tool_runner.tools.search.model import (
    Mode,
    ToolQuery,
    check_query,
    compact,
    fuse,
    to_embed,
    unit_vector,
    words_of,
)

ONE, TWO, THREE = (UUID(int=number) for number in (1, 2, 3))


def tool(name: str, description: str, schema: Any) -> Tool:
    return Tool(
        id=ONE,
        name=name,
        description=description,
        tool_type=ToolType.CUSTOM,
        source_type="python",
        source_code="",
        json_schema=schema if isinstance(schema, str) else json.dumps(schema),
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("getWeather", ["getweather", "get", "weather"]),
        ("send_email now", ["send", "email", "now"]),
        ("Größe, größe!", ["größe", "grosse"]),
        ("?!", []),
    ],
)
def test_words_of_a_query(text: str, words: list[str]) -> None:
    assert words_of(text) == words


def test_names_are_compared_without_what_is_between_their_words() -> None:
    assert compact("Send-E_mail") == compact("sendEMail") == "sendemail"


def test_what_is_embedded() -> None:
    schema = {"parameters": {"properties": {"fromCity": {"description": "Where it begins."}, "x": True, "y": 7}}}
    assert (
        to_embed(tool("findFlights", "Find them.", schema))
        == "find Flights\nFind them.\nfrom City: Where it begins.\nx: \ny: "
    )
    for odd in ("", '{"parameters": null}', '{"parameters": {"properties": []}}', '{"parameters": []}'):
        assert to_embed(tool("a_b", "C.", odd)) == "a b\nC."
    assert len(to_embed(tool("a", "x" * 100_000, "{}"))) == 6_000


def test_the_better_of_both_rankings_comes_first() -> None:
    both = fuse([ONE, TWO], [TWO, THREE])
    assert [place.tool_id for place in both] == [TWO, ONE, THREE]
    assert [(place.text_rank, place.vector_rank) for place in both] == [(2, 1), (1, None), (None, 2)]
    assert [place.tool_id for place in fuse([ONE, TWO], [TWO, ONE])] == [ONE, TWO]  # equal: the better word
    assert [place.score for place in fuse(None, [ONE])] == [1 / 61]
    assert fuse([], []) == []


def test_vectors_without_direction_are_none() -> None:
    assert unit_vector([3.0, 4.0]) == [0.6, 0.8]
    for values in ([0.0, 0.0], [float("nan"), 1.0], [float("inf")], []):
        assert unit_vector(values) is None


@pytest.mark.parametrize("fields", [{"text": "x" * 10_001}, {"limit": 0}, {"limit": 101}])
def test_queries_that_are_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(Refused) as caught:
        check_query(ToolQuery(**{"text": "x", **fields}))
    assert caught.value.reason == "TOOL_SEARCH_INVALID"


def test_a_query_is_made_storable() -> None:
    query = check_query(ToolQuery(text=" a\0b\ud800 ", mode=Mode.TEXT, tags=("t",), types=(ToolType.CUSTOM,), limit=60))
    assert (query.text, query.mode, query.tags, query.depth) == ("a\ufffdb\ufffd", Mode.TEXT, ("t",), 120)
