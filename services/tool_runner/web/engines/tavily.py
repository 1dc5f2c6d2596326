"""Tavily: https://docs.tavily.com/documentation/api-reference/endpoint/search. Pure."""

from services.tool_runner.web.engines.engine import Engine, Hit, JsonObject, Query, Request, hits_of

_MOST = 20
_TOPICS = {"news": "news", "financial report": "finance"}


def _request(query: Query, key: str) -> Request:
    options = {
        "topic": _TOPICS.get(query.category, ""),
        "include_domains": list(query.include_domains),
        "exclude_domains": list(query.exclude_domains),
        "start_date": query.since[:10],
        "end_date": query.until[:10],
        "include_raw_content": "markdown" if query.with_text else "",
    }
    body: JsonObject = {"query": query.text, "max_results": min(query.most, _MOST)}
    members = {name: value for name, value in options.items() if value}
    return Request("/search", {"Authorization": f"Bearer {key}"}, json=body | members)


def _hits(answer: JsonObject) -> list[Hit]:
    return hits_of(answer["results"], excerpt="content", text="raw_content", published="published_date")


ENGINE = Engine(
    name="tavily",
    key="TAVILY_API_KEY",
    address_setting="TAVILY_BASE_URL",
    address="https://api.tavily.com",
    gives_text=True,
    request=_request,
    hits=_hits,
)
