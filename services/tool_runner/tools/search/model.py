"""Queries over tools, the text of a tool that is embedded, and the fusion of two rankings. Pure."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from math import hypot, isfinite
from uuid import UUID

from services.common.core.fusion import reciprocal_ranks
from services.common.core.ranking import depth
from services.common.core.refusals import Refused
from services.common.core.words import query_words
from services.tool_runner.core.model import Tool, ToolType
from services.tool_runner.core.storable import storable

LONGEST_QUERY = 10_000
DEFAULT_RESULTS, MOST_RESULTS = 50, 100
# What embedding models read of a text in any language, with room to spare.
_MOST_EMBEDDED = 6_000
_MOST_WORDS = 64
_WORD = re.compile(r"[^\W_]+")
_BETWEEN_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[_-]+")
_NOT_IN_NAMES = re.compile(r"[^a-z0-9]+")


class Mode(Enum):
    """The way to search."""

    HYBRID = "hybrid"
    VECTOR = "vector"
    TEXT = "text"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolQuery:
    """A query, and how many tools at most; an empty text: the newest. Any of `tags`, any of `types`."""

    text: str
    mode: Mode = Mode.HYBRID
    tags: tuple[str, ...] = ()
    types: tuple[ToolType, ...] = ()
    limit: int = DEFAULT_RESULTS

    @property
    def depth(self) -> int:
        """Returns how many results each ranking gives."""
        return depth(self.limit)


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a tool: its score, and its rank, from 1, in the rankings that it is in."""

    tool_id: UUID
    score: float
    text_rank: int | None = None
    vector_rank: int | None = None


def check_query(query: ToolQuery) -> ToolQuery:
    """Returns the query as it will be asked. Raises Refused (TOOL_SEARCH_INVALID)."""
    text = storable(query.text).strip()
    if len(text) > LONGEST_QUERY:
        sentence = f"a query has at most {LONGEST_QUERY} characters, this one {len(text)}"
        raise Refused("TOOL_SEARCH_INVALID", sentence)
    if not 1 <= query.limit <= MOST_RESULTS:
        raise Refused("TOOL_SEARCH_INVALID", f"limit is 1 to {MOST_RESULTS}, not {query.limit}")
    return ToolQuery(text=text, mode=query.mode, tags=query.tags, types=query.types, limit=query.limit)


def words_of(text: str) -> list[str]:
    """Returns the words of a query, without duplicates: names in snake_case and camelCase fall into theirs, too.

    With their accents, which the index keeps, and without, as people type them.
    """
    plain = [word.lower() for word in _WORD.findall(text)[:_MOST_WORDS]]
    return list(dict.fromkeys([*plain, *query_words(text), *query_words(_BETWEEN_WORDS.sub(" ", text))]))


def compact(text: str) -> str:
    """Returns a name, or a part of one, without case and what stands between its words."""
    return _NOT_IN_NAMES.sub("", text.lower())


def to_embed(tool: Tool) -> str:
    """Returns the text that a tool's vector stands for: its name in words, what it does, and its arguments."""
    lines = [_BETWEEN_WORDS.sub(" ", tool.name), tool.description, *_arguments(tool.json_schema)]
    return "\n".join(filter(None, lines))[:_MOST_EMBEDDED]


def _arguments(json_schema: str) -> list[str]:
    parameters = json.loads(json_schema).get("parameters") if json_schema else None
    properties = parameters.get("properties") if isinstance(parameters, dict) else None
    if not isinstance(properties, dict):
        return []
    described = {
        name: schema.get("description", "") if isinstance(schema, dict) else "" for name, schema in properties.items()
    }
    return [f"{_BETWEEN_WORDS.sub(' ', name)}: {said}" for name, said in described.items() if isinstance(said, str)]


def unit_vector(values: Sequence[float]) -> list[float] | None:
    """Returns the vector at length 1, which fits 16-bit floats; None where it has no direction or is not finite."""
    length = hypot(*values)
    return [value / length for value in values] if length and isfinite(length) else None


def fuse(by_words: Sequence[UUID] | None, by_vector: Sequence[UUID] | None) -> list[Place]:
    """Returns one order out of the rankings that were made, by reciprocal rank; ties: the better word rank."""
    scores = reciprocal_ranks([ranking for ranking in (by_words, by_vector) if ranking is not None])
    text, vector = _ranks(by_words), _ranks(by_vector)
    places = [Place(key, score, text.get(key), vector.get(key)) for key, score in scores.items()]
    return sorted(places, key=lambda place: (-place.score, place.text_rank or len(scores) + 1, place.tool_id.int))


def _ranks(ranking: Sequence[UUID] | None) -> Mapping[UUID, int]:
    return {tool_id: rank for rank, tool_id in enumerate(ranking or (), 1)}
