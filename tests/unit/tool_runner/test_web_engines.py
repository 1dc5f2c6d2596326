"""Search engines: what is asked of each, and what is made of its answer."""

from typing import Any

import pytest

from services.tool_runner.web.engines import ENGINES, brave, exa, searxng, tavily
from services.tool_runner.web.engines.engine import Engine, Hit, Query

PLAIN = Query(text="llamas", most=3)
FULL = Query(
    text="llamas",
    most=500,
    category="news",
    with_text=True,
    include_domains=("a.org", "b.org"),
    exclude_domains=("c.org",),
    since="2026-01-02T00:00:00Z",
    until="2026-03-04",
    user_location="PE",
)


@pytest.mark.parametrize(
    ("engine", "query", "headers", "parameters", "body"),
    [
        (
            exa.ENGINE,
            PLAIN,
            {"x-api-key": "k"},
            {},
            {
                "query": "llamas",
                "type": "auto",
                "numResults": 3,
                "contents": {"highlights": {"numSentences": 3, "highlightsPerUrl": 1}},
            },
        ),
        (
            exa.ENGINE,
            FULL,
            {"x-api-key": "k"},
            {},
            {
                "query": "llamas",
                "type": "auto",
                "numResults": 100,
                "contents": {"highlights": {"numSentences": 3, "highlightsPerUrl": 1}, "text": True},
                "category": "news",
                "includeDomains": ["a.org", "b.org"],
                "excludeDomains": ["c.org"],
                "startPublishedDate": "2026-01-02T00:00:00Z",
                "endPublishedDate": "2026-03-04",
                "userLocation": "PE",
            },
        ),
        (tavily.ENGINE, PLAIN, {"Authorization": "Bearer k"}, {}, {"query": "llamas", "max_results": 3}),
        (
            tavily.ENGINE,
            FULL,
            {"Authorization": "Bearer k"},
            {},
            {
                "query": "llamas",
                "max_results": 20,
                "topic": "news",
                "include_domains": ["a.org", "b.org"],
                "exclude_domains": ["c.org"],
                "start_date": "2026-01-02",
                "end_date": "2026-03-04",
                "include_raw_content": "markdown",
            },
        ),
        (
            brave.ENGINE,
            FULL,
            {"X-Subscription-Token": "k", "Accept": "application/json"},
            {
                "q": "llamas (site:a.org OR site:b.org) -site:c.org",
                "count": "20",
                "country": "PE",
                "freshness": "2026-01-02to2026-03-04",
                "result_filter": "web,news",
            },
            None,
        ),
        (searxng.ENGINE, PLAIN, {}, {"q": "llamas", "format": "json"}, None),
        (
            searxng.ENGINE,
            FULL,
            {},
            {"q": "llamas (site:a.org OR site:b.org) -site:c.org", "format": "json", "categories": "news"},
            None,
        ),
    ],
)
def test_what_is_asked(
    engine: Engine, query: Query, headers: dict[str, str], parameters: dict[str, str], body: Any
) -> None:
    request = engine.request(query, "k")
    assert (dict(request.headers), dict(request.parameters), request.json) == (headers, parameters, body)
    assert "headers" not in repr(request)


@pytest.mark.parametrize(
    ("engine", "answer", "hits"),
    [
        (
            exa.ENGINE,
            {
                "results": [
                    {"title": "T", "url": "u", "publishedDate": "2026", "author": "A", "highlights": ["x", "y"]},
                    {"title": None, "url": "v", "text": "whole", "author": None},
                ]
            },
            [
                Hit(title="T", url="u", excerpt="x y", author="A", published="2026"),
                Hit(title="", url="v", text="whole"),
            ],
        ),
        (
            tavily.ENGINE,
            {"results": [{"title": "T", "url": "u", "content": "c", "raw_content": None, "score": 0.5}]},
            [Hit(title="T", url="u", excerpt="c")],
        ),
        (
            brave.ENGINE,
            {
                "web": {"results": [{"title": "T", "url": "u", "description": "d", "profile": {"name": "P"}}]},
                "news": {"results": [{"title": "N", "url": "n", "page_age": "2026"}]},
            },
            [Hit(title="T", url="u", excerpt="d", author="P"), Hit(title="N", url="n", published="2026")],
        ),
        (brave.ENGINE, {"web": None}, []),
        (
            searxng.ENGINE,
            {"results": [{"title": "T", "url": "u", "content": "c"}]},
            [Hit(title="T", url="u", excerpt="c")],
        ),
    ],
)
def test_what_is_made_of_the_answer(engine: Engine, answer: Any, hits: list[Hit]) -> None:
    assert engine.hits(answer) == hits


@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.name)
@pytest.mark.parametrize(
    "answer", [[], "x", None, {"results": 3, "web": 3}, {"results": [{}], "web": {"results": [{}]}}]
)
def test_an_answer_of_another_shape_is_told_apart(engine: Engine, answer: Any) -> None:
    with pytest.raises((KeyError, TypeError, AttributeError, ValueError)):
        engine.hits(answer)
