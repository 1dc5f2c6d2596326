"""The text that is embedded, the query, and the fusion of two answers."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from loci.agent.v1 import message_service_pb2 as wire
from services.agent.convert.search import hits_to_proto, message_query, search_target
from services.agent.core.continuation import heartbeat
from services.agent.core.messages import Call, Decision, Image, Message, Part, Reasoning, Return, Role, Text
from services.agent.core.recall.query import (
    MessageFilter,
    MessageHit,
    MessageQuery,
    Mode,
    RankedMessage,
    VectorRanking,
    check_query,
    fuse,
)
from services.agent.core.recall.texts import embedding_text, index_texts, query_text
from services.agent.core.recall.vector_choice import by_index, candidates, most_read
from services.common.core.fusion import FusedScore
from services.common.core.refusals import Refused
from services.common.core.vectors import unit_vector
from services.common.errors import InvalidArgument

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
AGENT, CONVERSATION = UUID(int=10), UUID(int=11)


def message(role: Role, *parts: Part) -> Message:
    """One message."""
    return Message(UUID(int=1), role, parts, NOON)


@pytest.mark.parametrize(
    ("said", "embedded"),
    [
        (message("user", Text("A car."), Image(url="https://x/y.png"), Text("Red.")), "A car.\nRed."),
        (message("assistant", Reasoning("Hm."), Text("Yes."), Call("k", "c", "look", "{}")), "Yes.\nlook {}"),
        (message("assistant", Call("k", "c", "conversation_search", '{"query": "car"}')), ""),
        (message("tool", Return("c", "look", "Three."), Return("d", "conversation_search", "[...]")), "Three."),
        (message("system", Text("Rules.")), ""),
        (message("summary", Text("They talked.")), ""),
        (message("approval", Decision("c", reason="No.")), ""),
        (message("user", Text(heartbeat("go on"))), ""),
        (message("user", Text(" \n ")), ""),
        (message("user", Text("ä" * 20_000)), "ä" * 10_000),
        (message("user", Text("a" + "ä" * 20_000)), "a" + "ä" * 9_999),
    ],
)  # fmt: skip
def test_what_is_embedded(said: Message, embedded: str) -> None:
    assert embedding_text(said) == embedded


def test_what_has_no_spaces_is_found_by_pairs() -> None:
    assert index_texts("") == [""]
    assert index_texts("A car — naïve 🚗.") == ["A car — naïve 🚗."]
    assert index_texts("GPT的模型") == ["GPT的模型 的 的模 模 模型 型"]
    assert query_text("模型") == "模型 模型"
    assert query_text("a model") == "a model"
    assert [len(piece) for piece in index_texts("word " * 30_000)] == [99_999, 50_001]
    long = index_texts("".join(map(chr, range(0x4E00, 0x9000))) * 8)
    assert [len(piece) > 20_000 for piece in long] == [True] * 2 + [False] * 5


def test_vectors_have_length_one_or_are_none() -> None:
    assert unit_vector([3.0, 4.0]) == [0.6, 0.8]
    assert unit_vector([0.0, 0.0]) is None
    with pytest.raises(ValueError, match="finite"):
        unit_vector([float("nan")])


QUERY = MessageQuery("car")


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"text": "x" * 10_001}, "10000 characters"),
        ({"limit": 0}, "1 to 1000"),
        ({"limit": 1_001}, "1 to 1000"),
        ({"filter": MessageFilter(roles=("summary",))}, "no role"),
        ({"filter": MessageFilter(start=NOON, end=datetime(2025, 1, 1, tzinfo=UTC))}, "begins after its end"),
    ],
)
def test_a_query_out_of_range(changes: dict[str, Any], told: str) -> None:
    with pytest.raises(Refused, match=told) as refused:
        check_query(replace(QUERY, **changes))
    assert refused.value.reason == "MESSAGE_QUERY_INVALID"


def test_what_cannot_be_stored_is_not_looked_for() -> None:
    assert check_query(replace(QUERY, text=" a\0 car\ud800 ")).text == "a car\ufffd"


def test_two_answers_become_one() -> None:
    def ranked(*ids: int) -> list[RankedMessage]:
        return [RankedMessage(UUID(int=number), 1 / place) for place, number in enumerate(ids, 1)]

    vectors = VectorRanking(ranked(1, 2, 3), 1.0)
    fused = fuse([vectors], ranked(3, 4), Mode.HYBRID)
    assert [(one.key.int, one.score) for one in fused] == [(1, 0.5), (3, 0.5), (4, 0.25), (2, 0.125)]
    assert fused[1] == FusedScore(UUID(int=3), 0.5, 1 / 3, 1.0)
    assert fused[2].vector is None
    assert fuse([], ranked(7), Mode.HYBRID) == [FusedScore(UUID(int=7), 1.0, None, 1.0)]
    assert fuse([], ranked(5), Mode.TEXT) == [FusedScore(UUID(int=5), 1.0, None, 1.0)]
    assert fuse([VectorRanking(ranked(5), 1.0)], [], Mode.VECTOR) == [FusedScore(UUID(int=5), 1.0, 1.0, None)]
    several = fuse([vectors, VectorRanking(ranked(8), 1.0)], [], Mode.VECTOR)
    assert [(one.key.int, one.score) for one in several][:3] == [(1, 1 / 61), (8, 1 / 61), (2, 1 / 62)]


def test_when_the_index_is_asked() -> None:
    assert not by_index(10_000, indexed=1_000_000, limit=50, dimensions=384)
    assert not by_index(100_000, indexed=0, limit=50, dimensions=384)
    assert by_index(100_000, indexed=200_000, limit=50, dimensions=384)
    # One in a hundred is read.
    assert not by_index(20_000, indexed=20_000_000, limit=100, dimensions=384)
    assert most_read(4_096) == 2_500
    assert (candidates(10), candidates(300), candidates(9_999)) == (200, 600, 1_000)


def test_a_search_on_the_wire() -> None:
    request = wire.SearchMessagesRequest(query="car", roles=["tool", "tool"], mode=wire.MESSAGE_SEARCH_MODE_TEXT)
    request.start_time.FromDatetime(NOON)
    assert message_query(request) == MessageQuery("car", 50, Mode.TEXT, MessageFilter(("tool",), NOON))
    assert search_target(request) == (None, None)
    named = wire.SearchMessagesRequest(agent_id=f"agent-{AGENT}", conversation_id=f"agent-{AGENT}")
    assert search_target(named) == (AGENT, AGENT)
    named.conversation_id = f"conv-{CONVERSATION}"
    assert search_target(named) == (AGENT, CONVERSATION)
    for wrong in (wire.SearchMessagesRequest(roles=["approval"]), wire.SearchMessagesRequest(mode=9)):  # type: ignore[arg-type]
        with pytest.raises(Refused):
            message_query(wrong)
    request.end_time.seconds = 10**15
    with pytest.raises(Refused, match="years"):
        message_query(request)
    with pytest.raises(InvalidArgument):
        search_target(wire.SearchMessagesRequest(conversation_id="default"))


def test_a_hit_for_each_piece_that_is_searched() -> None:
    said = message("assistant", Reasoning("Hm."), Text("Yes."), Call("k", "c", "look", "{}"))
    hits = list(hits_to_proto(MessageHit(said, AGENT, CONVERSATION, FusedScore(said.id, 0.5, 0.25))))
    assert [hit.message.WhichOneof("message") for hit in hits] == ["assistant_message", "tool_call_message"]
    assert (hits[0].agent_id, hits[0].conversation_id) == (f"agent-{AGENT}", f"conv-{CONVERSATION}")
    assert (hits[0].score, hits[0].vector_score, hits[0].HasField("text_score")) == (0.5, 0.25, False)
    (own,) = hits_to_proto(MessageHit(message("user", Text("A.")), AGENT, AGENT, FusedScore(said.id, 0.5)))
    assert own.conversation_id == ""
