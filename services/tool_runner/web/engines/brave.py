"""Brave Search: https://api-dashboard.search.brave.com/app/documentation/web-search. Pure."""

from services.tool_runner.web.engines.engine import Engine, Hit, JsonObject, Query, Request, text_of, with_sites

_MOST = 20
_EARLIEST, _LATEST = "1970-01-01", "2100-01-01"


def _request(query: Query, key: str) -> Request:
    parameters = {"q": with_sites(query), "count": str(min(query.most, _MOST))}
    if query.user_location:
        parameters["country"] = query.user_location
    if query.since or query.until:
        parameters["freshness"] = f"{query.since[:10] or _EARLIEST}to{query.until[:10] or _LATEST}"
    if query.category == "news":
        parameters["result_filter"] = "web,news"
    return Request("/res/v1/web/search", {"X-Subscription-Token": key, "Accept": "application/json"}, parameters)


def _hits(answer: JsonObject) -> list[Hit]:
    hits = [hit for kind in ("web", "news") for hit in (answer.get(kind) or {}).get("results", ())]
    return [
        Hit(
            title=text_of(hit.get("title")),
            url=hit["url"],
            excerpt=text_of(hit.get("description")),
            author=text_of((hit.get("profile") or {}).get("name")),
            published=text_of(hit.get("page_age")),
        )
        for hit in hits
    ]


ENGINE = Engine(
    name="brave",
    key="BRAVE_API_KEY",
    address_setting="BRAVE_BASE_URL",
    address="https://api.search.brave.com",
    gives_text=False,
    request=_request,
    hits=_hits,
)
