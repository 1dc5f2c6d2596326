"""Events as frames, byte by byte where it matters."""

from __future__ import annotations

import re

import orjson
import pytest

from gateway.resources.messages.responses import OF_COMPACTION, answer_types
from gateway.rest.convert import Rest
from gateway.rest.event_frames import DONE, frame
from gateway.turns.deltas import Deltas
from gateway.turns.speech import SpeechRenderer
from gateway.turns.sse import SseRenderer, error_frame
from loci.agent.v1 import agent_pb2, message_pb2, message_service_pb2
from services.common.errors import Unavailable
from tests.unit.gateway.pieces import calls, event, returns, text, thought

USAGE = message_service_pb2.TurnUsage(total_tokens=3)


def read(chunk: bytes) -> Rest:
    """The JSON of an unnamed chunk, numbered or not."""
    chunk = re.sub(rb"^id: \d+\n", b"", chunk)
    assert chunk.startswith(b"data: ")
    assert chunk.endswith(b"\n\n")
    content: Rest = orjson.loads(chunk[6:])
    return content


def end(reason: agent_pb2.StopReason.ValueType, error: message_service_pb2.TurnError | None = None) -> list[bytes]:
    """The frames of a turn's end."""
    ended = message_service_pb2.TurnEnd(stop_reason=reason, usage=USAGE, error=error)
    return SseRenderer(run_id="run-1").frames(event(9, end=ended))


def test_framing() -> None:
    assert frame({"a": "\n"}) == b'data: {"a":"\\n"}\n\n'
    assert error_frame({"a": 1}) == b'event: error\ndata: {"a":1}\n\n'
    assert DONE == b"data: [DONE]\n\n"


def test_the_first_ping_names_the_run() -> None:
    attached = event(attached=message_service_pb2.RunAttached(run_id="run-1"))
    [ping] = SseRenderer().frames(attached)
    content = read(ping)
    assert content.pop("id").startswith("ping-")
    assert content.pop("date").endswith("+00:00")
    nulls = dict.fromkeys(("name", "otid", "sender_id", "step_id", "is_err", "seq_id"))
    assert content == {"message_type": "ping", "run_id": "run-1", **nulls}
    assert SseRenderer(pings=False).frames(attached) == []


@pytest.mark.parametrize(
    "reason",
    [agent_pb2.STOP_REASON_END_TURN, agent_pb2.STOP_REASON_MAX_STEPS],
)
def test_good_ends(reason: agent_pb2.StopReason.ValueType) -> None:
    *chunks, done = end(reason)
    assert [read(chunk)["message_type"] for chunk in chunks] == ["stop_reason", "usage_statistics"]
    assert done == DONE


def test_a_cancelled_end_is_its_stop_reason_alone() -> None:
    [chunk] = end(agent_pb2.STOP_REASON_CANCELLED)
    assert read(chunk) == {"message_type": "stop_reason", "stop_reason": "cancelled"}


@pytest.mark.parametrize(("deltas", "written"), [(None, 0), (Deltas(), None)])
def test_what_no_provider_counted(deltas: Deltas | None, written: int | None) -> None:
    ended = message_service_pb2.TurnEnd(stop_reason=agent_pb2.STOP_REASON_END_TURN)
    assert read(SseRenderer(deltas=deltas).frames(event(9, end=ended))[1])["cache_write_tokens"] == written


def test_a_failed_end() -> None:
    error = message_service_pb2.TurnError(error_type="llm_timeout", message="too slow")
    stop, failed, done = end(agent_pb2.STOP_REASON_LLM_API_ERROR, error)
    assert stop == b'data: {"message_type":"stop_reason","stop_reason":"llm_api_error"}\n\n'
    assert failed == (
        b'event: error\ndata: {"message_type":"error_message","run_id":"run-1","error_type":"llm_timeout",'
        b'"message":"too slow","detail":null,"seq_id":null}\n\n'
    )
    assert done == DONE


PENDING = "message-00000000-0000-4000-8000-000000000001"


@pytest.mark.parametrize(
    ("error", "text", "detail"),
    [
        ({"reason": "APPROVAL_PENDING", "message": "a call is Waiting for approval"}, "a call is Waiting for approval",
         "a call is Waiting for approval"),
        ({"reason": "APPROVAL_PENDING", "message": "not yet", "detail": PENDING}, "waiting for approval: not yet",
         f"waiting for approval: not yet (pending_request_id={PENDING})"),
        ({"reason": "TOOL_CALL_IDS_INVALID", "message": "c2 does not wait"},
         "Invalid tool call IDs: c2 does not wait", "Invalid tool call IDs: c2 does not wait"),
        ({"reason": "NO_PENDING_APPROVAL", "message": "nothing waits"}, "nothing waits", "nothing waits"),
        ({"reason": "LLM_TIMEOUT", "message": "too slow", "detail": "504"}, "too slow", "504"),
    ],
)  # fmt: skip
def test_failures_that_clients_know_by_their_words(error: dict[str, str], text: str, detail: str) -> None:
    _, failed, _ = end(agent_pb2.STOP_REASON_ERROR, message_service_pb2.TurnError(**error))
    content = orjson.loads(failed.removeprefix(b"event: error\ndata: "))
    assert (content["error_type"], content["message"], content["detail"]) == ("internal_error", text, detail)


def test_a_stream_that_broke_off_says_how_to_go_on() -> None:
    stop, failed, done = SseRenderer(run_id="run-1").broken(Unavailable("no replica"))
    assert read(stop)["stop_reason"] == "error"
    content = orjson.loads(failed.removeprefix(b"event: error\ndata: "))
    assert (content["error_type"], content["detail"]) == ("stream_incomplete", "no replica")
    assert "/v1/runs/run-1/stream" in content["message"]
    assert done == DONE


def test_a_bug_is_told_without_details() -> None:
    content = orjson.loads(SseRenderer().broken(None)[1].removeprefix(b"event: error\ndata: "))
    assert (content["error_type"], content["detail"]) == ("internal_error", None)


def test_whole_messages_without_deltas() -> None:
    frames = SseRenderer()
    assert frames.frames(event(1, delta=text("Hel"))) == []
    assert read(frames.frames(event(2, message=text("Hello")))[0])["content"] == "Hello"


def test_only_what_agents_say_is_streamed() -> None:
    user = text("x")
    user.user_message.content.add(text="hi")
    assert SseRenderer().frames(event(1, message=user)) == []


def test_a_notice_is_told_at_once_to_those_who_ask_for_it() -> None:
    notice = message_pb2.Message(id="message-9", event_message=message_pb2.EventMessage(event_type="compaction"))
    assert SseRenderer().frames(event(3, notice=notice)) == []
    for frames in (SseRenderer(types=answer_types(compaction=True)), SseRenderer(deltas=Deltas(), types=OF_COMPACTION)):
        content = read(frames.frames(event(3, notice=notice))[0])
        assert (content["message_type"], content["event_type"]) == ("event_message", "compaction")


def test_what_an_older_agent_says_is_streamed_as_text() -> None:
    otid = "00000000-0000-4000-8000-000000000002"
    frames = SseRenderer(deltas=Deltas(), speech=SpeechRenderer())
    pieces = [calls(("c1", "send_message", '{"message": "He'), otid=otid), calls(("c1", "", 'llo"}'), otid=otid)]
    events = [event(number, delta=piece) for number, piece in enumerate(pieces, 1)]
    events.append(event(3, message=calls(("c1", "send_message", '{"message": "Hello!"}'), otid=otid)))
    events.append(event(4, message=returns(("c1", "send_message", "success"))))
    told = [read(chunk) for one in events for chunk in frames.frames(one)]
    assert [(one["message_type"], one["content"]) for one in told] == [
        ("assistant_message", "He"),
        ("assistant_message", "llo"),
        ("assistant_message", "!"),
    ]
    whole = SseRenderer(speech=SpeechRenderer()).frames(events[2])
    assert [read(chunk)["content"] for chunk in whole] == ["Hello!"]


def test_a_filter_drops_pieces_too() -> None:
    frames = SseRenderer(deltas=Deltas(), types=answer_types(["assistant_message"]))
    assert frames.frames(event(1, delta=thought("hm"))) == []
    assert len(frames.frames(event(2, delta=text("a")))) == 1


def test_numbered_chunks_carry_their_events_sequence() -> None:
    frames = SseRenderer(numbered=True)
    assert read(frames.frames(event(7, message=text("a")))[0])["seq_id"] == 8
    assert read(SseRenderer().frames(event(7, message=text("a")))[0])["seq_id"] is None


def test_what_comes_after_pieces_of_the_next_message_has_their_number() -> None:
    """Whoever goes on after a message's own number is told all of the next one."""
    frames = SseRenderer(deltas=Deltas(), numbered=True)
    frames.frames(event(1, delta=thought("hm")))
    frames.frames(event(2, delta=text("a")))
    [signature] = frames.frames(event(3, message=thought("hm", signature="s")))
    assert signature.startswith(b"id: 3\n")
    assert read(signature.removeprefix(b"id: 3\n"))["seq_id"] == 3
    [rest] = frames.frames(event(4, message=text("ab")))
    assert rest.startswith(b"id: 5\n")
    assert read(rest.removeprefix(b"id: 5\n"))["content"] == "b"
    [whole] = frames.frames(event(6, message=thought("so", number=2)))
    assert whole.startswith(b"id: 7\n")


def test_the_id_of_an_event_is_its_number_and_stands_at_its_last_chunk() -> None:
    frames = SseRenderer(deltas=Deltas(), numbered=True)
    attached = event(attached=message_service_pb2.RunAttached(run_id="run-1"))
    # The ping that begins the stream is the first, and the same for every reader.
    [first] = frames.frames(attached)
    assert first.startswith(b"id: 1\n")
    assert read(first.removeprefix(b"id: 1\n"))["seq_id"] == 1
    [again] = SseRenderer(numbered=True).frames(attached)
    assert [read(one.removeprefix(b"id: 1\n"))["id"] for one in (first, again)].count(read(again[6:])["id"]) == 2
    [piece] = frames.frames(event(7, delta=text("a")))
    assert piece.startswith(b'id: 8\ndata: {"id":"message-1",')
    both = frames.frames(event(8, delta=calls(("c1", "a", "{"), ("c2", "b", "{"))))
    assert [chunk.startswith(b"id: 9\n") for chunk in both] == [False, False, False, True]
    ended = message_service_pb2.TurnEnd(stop_reason=agent_pb2.STOP_REASON_END_TURN, usage=USAGE)
    assert frames.frames(event(9, end=ended))[-1] == b"id: 10\ndata: [DONE]\n\n"
    assert b"id:" not in b"".join(SseRenderer().frames(event(9, message=text("a"), end=ended)))
    assert not any(chunk.startswith(b"id:") for chunk in [frames.ping(), *frames.broken(None)])


def test_an_abandoned_attempt_is_a_ping_with_a_field() -> None:
    frames = SseRenderer(deltas=Deltas(), pings=False, numbered=True)
    frames.frames(event(1, delta=text("Hel")))
    abandoned = message_service_pb2.AttemptAbandoned(step_id="step-1", attempt=2)
    [chunk] = frames.frames(event(2, attempt_abandoned=abandoned))
    content = read(chunk)
    assert (content["message_type"], content["seq_id"]) == ("ping", 3)
    assert content["attempt_abandoned"] == {"step_id": "step-1", "message_id": None, "attempt": 2}
    # Its pieces are void: the message comes whole.
    assert read(frames.frames(event(3, message=text("Hello")))[0])["content"] == "Hello"


def test_an_event_that_is_younger_than_this_gateway_is_passed_over() -> None:
    assert SseRenderer().frames(event(5)) == []
