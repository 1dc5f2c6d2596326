"""The query of a search in messages, and the fusion of two searches' answers. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum
from uuid import UUID

from services.agent.core.messages import Message, Role
from services.common.core.fusion import FusedScore, VectorScores, fuse_ranks, fuse_scores
from services.common.core.neighbours import MOST_CONTEXT
from services.common.core.refusals import Refused
from services.common.core.storable import storable

LONGEST_QUERY = 10_000
DEFAULT_RESULTS, MOST_RESULTS = 50, 1_000
# What is searched when nothing is said, and what may be. Summaries only repeat what they stand for.
ROLES: tuple[Role, ...] = ("user", "assistant", "tool", "system")
_SEARCHED: tuple[Role, ...] = (*ROLES, "approval")


class Mode(Enum):
    """The way to search."""

    HYBRID = "hybrid"
    VECTOR = "vector"
    TEXT = "text"


@dataclass(frozen=True, slots=True)
class MessageFilter:
    """The messages that count: of these roles, made in [start, end], none of `unseen`.

    asked_in: the step whose call searches; what the model said in it is left out.
    """

    roles: tuple[str, ...] = ROLES
    start: datetime | None = None
    end: datetime | None = None
    unseen: tuple[UUID, ...] = ()
    asked_in: UUID | None = None


@dataclass(frozen=True, slots=True)
class MessageQuery:
    """The text to look for, and how many messages at most, each with `context` neighbours on either side.

    An empty text: the newest.
    """

    text: str
    limit: int = DEFAULT_RESULTS
    mode: Mode = Mode.HYBRID
    filter: MessageFilter = MessageFilter()
    context: int = 0


@dataclass(frozen=True, slots=True)
class Range:
    """Some of a log's messages, both ends included."""

    log_id: UUID
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Scope:
    """The messages to search: all that `agent_id` said and heard, and `ranges` of logs; with neither, the tenant's.

    agent_ids: whose logs those are, all of them. messages: about how many. embedding: the model that its messages get
    vectors of, empty for none; None where several may be.
    """

    organization_id: UUID
    agent_id: UUID | None
    agent_ids: tuple[UUID, ...]
    ranges: tuple[Range, ...]
    messages: int
    embedding: str | None

    @property
    def is_tenant(self) -> bool:
        """Returns whether all agents are searched."""
        return self.agent_id is None and not self.agent_ids


@dataclass(frozen=True, slots=True)
class RankedMessage:
    """A message in the answer of one search; higher scores first.

    whole: in a search by words, the score of a message of usual length in which every word of the query stands once.
    """

    message_id: UUID
    score: float
    whole: float = 0.0


@dataclass(frozen=True, slots=True)
class VectorRanking:
    """The answer by the vectors of one model; `weight`: see `fusion.VectorScores`."""

    messages: Sequence[RankedMessage]
    weight: float


@dataclass(frozen=True, slots=True)
class MessageHit:
    """A message found, whose it is and where it was said, with its scores.

    before, after: its neighbours, where the query asks for them.
    """

    message: Message
    agent_id: UUID
    conversation_id: UUID
    ranked: FusedScore[UUID]
    before: Sequence[Message] = ()
    after: Sequence[Message] = ()


def check_query(query: MessageQuery) -> MessageQuery:
    """Returns the query as it will be asked. Raises Refused (MESSAGE_QUERY_INVALID)."""
    text, filters = storable(query.text).strip(), query.filter
    if len(text) > LONGEST_QUERY:
        raise _refusal(f"a query has at most {LONGEST_QUERY} characters, this one {len(text)}")
    if not 1 <= query.limit <= MOST_RESULTS:
        raise _refusal(f"limit is 1 to {MOST_RESULTS}, not {query.limit}")
    if not 0 <= query.context <= MOST_CONTEXT:
        raise _refusal(f"context is 0 to {MOST_CONTEXT} messages on either side, not {query.context}")
    for role in filters.roles:
        if role not in _SEARCHED:
            raise _refusal(f"{storable(role)[:40]!r} is no role; there are {', '.join(ROLES)}")
    if filters.start is not None and filters.end is not None and filters.start > filters.end:
        raise _refusal("the search begins after its end; exchange start and end")
    return replace(query, text=text)


def _refusal(sentence: str) -> Refused:
    return Refused("MESSAGE_QUERY_INVALID", sentence)


def fuse(vectors: Sequence[VectorRanking], text: Sequence[RankedMessage], mode: Mode) -> list[FusedScore[UUID]]:
    """Returns one order of all rankings, one for each embedding model and that by words.

    A search of one kind by one ranking has its scores; one by vectors of several models goes by their ranks.
    """
    if mode is Mode.TEXT:
        return [FusedScore(one.message_id, one.score, None, one.score) for one in text]
    if mode is Mode.VECTOR and len(vectors) == 1:
        return [FusedScore(one.message_id, one.score, one.score, None) for one in vectors[0].messages]
    scores = [VectorScores(_scores(one.messages), one.weight) for one in vectors]
    if mode is Mode.VECTOR:
        return fuse_ranks(scores)
    return fuse_scores(scores, _scores(text), text[0].whole if text else 0.0)


def _scores(ranked: Sequence[RankedMessage]) -> Mapping[UUID, float]:
    return {one.message_id: one.score for one in ranked}


def lexeme_of_agent(agent_id: UUID) -> str:
    """Returns the lexeme that the index over words has for an agent's messages."""
    return f"@{agent_id.hex}"


def lexeme_of_tenant(organization_id: UUID) -> str:
    """Returns the lexeme that the index over words has for all of a tenant's messages."""
    return f"@@{organization_id.hex}"
