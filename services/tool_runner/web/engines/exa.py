"""Exa: https://docs.exa.ai/reference/search. Pure."""

from services.tool_runner.web.engines.engine import Engine, Hit, JsonObject, Query, Request, text_of

_MOST = 100


def _request(query: Query, key: str) -> Request:
    options = {
        "category": query.category,
        "includeDomains": list(query.include_domains),
        "excludeDomains": list(query.exclude_domains),
        "startPublishedDate": query.since,
        "endPublishedDate": query.until,
        "userLocation": query.user_location,
    }
    contents: JsonObject = {"highlights": {"numSentences": 3, "highlightsPerUrl": 1}}
    if query.with_text:
        contents["text"] = True
    body = {"query": query.text, "type": "auto", "numResults": min(query.most, _MOST), "contents": contents}
    members = {name: value for name, value in options.items() if value}
    return Request("/search", {"x-api-key": key}, json=body | members)


def _hits(answer: JsonObject) -> list[Hit]:
    return [
        Hit(
            title=text_of(found.get("title")),
            url=found["url"],
            excerpt=" ".join(found.get("highlights") or ()) or text_of(found.get("summary")),
            text=text_of(found.get("text")),
            author=text_of(found.get("author")),
            published=text_of(found.get("publishedDate")),
        )
        for found in answer["results"]
    ]


ENGINE = Engine(
    name="exa",
    key="EXA_API_KEY",
    address_setting="EXA_BASE_URL",
    address="https://api.exa.ai",
    gives_text=True,
    request=_request,
    hits=_hits,
)
