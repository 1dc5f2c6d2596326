"""A search engine: a pure way from a query to a request, and from its answer to hits. Pure."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

JsonObject = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A web search. Dates are ISO 8601; `user_location` is a country code of two letters."""

    text: str
    most: int = 10
    category: str = ""
    with_text: bool = False
    include_domains: tuple[str, ...] = ()
    exclude_domains: tuple[str, ...] = ()
    since: str = ""
    until: str = ""
    user_location: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A page. `excerpt` is what the engine shows of it, `text` its content where it was asked for."""

    title: str
    url: str
    excerpt: str = ""
    text: str = ""
    author: str = ""
    published: str = ""


@dataclass(frozen=True, slots=True)
class Request:
    """A request to be sent to the engine's address plus `path`; `json` makes it a POST."""

    path: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    parameters: Mapping[str, str] = field(default_factory=dict)
    json: JsonObject | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """`key` names the setting, and variable of an agent, that holds its key; `address` is "" where one must be set.

    `hits` raises KeyError, TypeError, AttributeError or ValueError for an answer of another shape.
    """

    name: str
    key: str
    address_setting: str
    address: str
    gives_text: bool
    request: Callable[[Query, str], Request]
    hits: Callable[[JsonObject], list[Hit]]


def hits_of(items: Iterable[JsonObject], **members: str) -> list[Hit]:
    """Hits whose parts stand in members of their own; `members` says in which, title and url are in those."""
    return [
        Hit(
            title=text_of(one.get("title")),
            url=one["url"],
            **{part: text_of(one.get(member)) for part, member in members.items()},
        )
        for one in items
    ]


def with_sites(query: Query) -> str:
    """Returns the text with domains as the operators that most engines know."""
    included = " OR ".join(f"site:{domain}" for domain in query.include_domains)
    excluded = " ".join(f"-site:{domain}" for domain in query.exclude_domains)
    return " ".join(part for part in (query.text, f"({included})" if included else "", excluded) if part)


def text_of(value: Any) -> str:
    """Returns the text, or ""."""
    return value if isinstance(value, str) else ""
