"""SearXNG, by the URL of an instance that allows format json: https://docs.searxng.org/dev/search_api.html. Pure."""

from services.tool_runner.web.engines.engine import Engine, Hit, JsonObject, Query, Request, hits_of, with_sites

_CATEGORIES = {"news": "news", "research paper": "science", "github": "it"}


def _request(query: Query, key: str) -> Request:
    parameters = {"q": with_sites(query), "format": "json"}
    if category := _CATEGORIES.get(query.category):
        parameters["categories"] = category
    return Request("/search", parameters=parameters)


def _hits(answer: JsonObject) -> list[Hit]:
    return hits_of(answer["results"], excerpt="content", author="author", published="publishedDate")


ENGINE = Engine(
    name="searxng",
    key="",
    address_setting="LOCI_SEARXNG_URL",
    address="",
    gives_text=False,
    request=_request,
    hits=_hits,
)
