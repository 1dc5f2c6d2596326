"""The streaming client: frames, events, its place in a stream, and connections that are lost anywhere."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from cli.streaming import (
    AmbiguousName,
    ApiError,
    AssistantMessage,
    AttemptAbandoned,
    Client,
    ConversationBusy,
    ErrorMessage,
    InvalidRequest,
    ModelFailed,
    NotFound,
    PendingApproval,
    Ping,
    RateLimited,
    StopReason,
    ToolCallMessage,
    ToolReturnMessage,
    Unauthorized,
    UnknownEvent,
    Unreachable,
    UsageStatistics,
)
from cli.streaming.cursor import Cursor
from cli.streaming.events import event
from cli.streaming.sse import Frame, frames

RUN_ID = "run-00000000-0000-4000-8000-00000000000d"
AGENT_ID = "agent-00000000-0000-4000-8000-00000000000a"


def test_frames() -> None:
    lines = [
        ": hello",
        "data: {",
        "data:  }",
        "",
        "event: error",
        "id: 7",
        'data: {"a": 1}',
        "",
        "id: x",
        "data: [DONE]",
    ]
    assert list(frames([*lines, "", "data: cut off"])) == [
        Frame("", "{\n }"),
        Frame("error", '{"a": 1}', 7),
        Frame("", "[DONE]"),
    ]


def test_events_have_types() -> None:
    call = {"tool_call_id": "c1", "name": "roll", "arguments": "{"}
    rows: list[tuple[dict[str, Any], type]] = [
        ({"message_type": "assistant_message", "content": [{"type": "text", "text": "hi"}]}, AssistantMessage),
        ({"message_type": "tool_call_message", "tool_calls": call}, ToolCallMessage),
        ({"message_type": "approval_request_message", "tool_calls": [call, call]}, ToolCallMessage),
        ({"message_type": "tool_return_message", "status": "error", "tool_return": "no"}, ToolReturnMessage),
        ({"message_type": "ping"}, Ping),
        ({"message_type": "ping", "attempt_abandoned": {"step_id": "step-1", "message_id": None}}, AttemptAbandoned),
        ({"message_type": "error_message"}, ErrorMessage),
        ({"message_type": "stop_reason", "stop_reason": "end_turn"}, StopReason),
        ({"message_type": "usage_statistics", "prompt_tokens": 3, "step_count": None}, UsageStatistics),
        ({"message_type": "of tomorrow"}, UnknownEvent),
        ({}, UnknownEvent),
    ]
    for raw, kind in rows:
        assert type(event(raw)) is kind
    waiting = event(rows[2][0])
    assert isinstance(waiting, ToolCallMessage)
    assert (len(waiting.calls), waiting.waits, waiting.calls[0].arguments) == (2, True, "{")


def test_a_place_in_the_middle_of_an_event() -> None:
    first, last, next_ = Frame("", "a"), Frame("", "b", 5), Frame("", "c", 6)
    place = Cursor(after=4)
    assert place.is_new(first, 5)
    place.reconnect()
    assert place.after == 4
    assert [place.is_new(first, 5), place.is_new(last, 5), place.is_new(next_, 6)] == [False, True, True]
    assert place.after == 6
    place.reconnect()
    assert [place.is_new(last, 5), place.is_new(next_, 6), place.is_new(Frame("", "ping"), None)] == [
        False,
        False,
        True,
    ]


# ------------------------------------------------------------------ a server that is lost again and again

WORDS = [f"w{number} " for number in range(12)]


def chunk(number: int | None, *, ids: bool = True, **fields: Any) -> bytes:
    """A chunk of a stream."""
    body = json.dumps({"run_id": RUN_ID, "seq_id": number, **fields}).encode()
    head = b"id: %d\n" % number if number and ids else b""
    name = b"event: error\n" if fields["message_type"] == "error_message" else b""
    return head + name + b"data: " + body + b"\n\n"


def said(number: int, text: str, *, ids: bool = True) -> bytes:
    """A chunk that says something."""
    return chunk(number, message_type="assistant_message", content=text, ids=ids)


# Two words to an event, so that there are chunks without an id.
TOLD = [(number // 2 + 1, said(number // 2 + 1, word, ids=number % 2 == 1)) for number, word in enumerate(WORDS)]
END = [
    chunk(None, message_type="stop_reason", stop_reason="end_turn"),
    chunk(None, message_type="usage_statistics", total_tokens=3),
    b"id: 9\ndata: [DONE]\n\n",
]


class Losing(httpx.SyncByteStream):
    """A body that ends in an error."""

    def __init__(self, content: bytes, error: type[httpx.TransportError] | None) -> None:
        self._content, self._error = content, error

    def __iter__(self) -> Iterator[bytes]:
        yield self._content
        if self._error:
            raise self._error("gone")


class Server:
    """A server that streams the words, and breaks off after so many bytes, once for each of `cuts`."""

    def __init__(self, *cuts: int, error: type[httpx.TransportError] | None = httpx.ReadError) -> None:
        self.cuts, self.error = list(cuts), error
        self.asked: list[tuple[str, dict[str, Any]]] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content)
        self.asked.append((request.url.path, body))
        after = body.get("starting_after", 0)
        ping = chunk(None, message_type="ping")
        content = b"".join([ping, *(frame for number, frame in TOLD if number > after), *END])
        if not self.cuts:
            return httpx.Response(200, content=content)
        return httpx.Response(200, stream=Losing(content[: self.cuts.pop(0)], self.error))


def client(answer: Callable[[httpx.Request], httpx.Response], **options: Any) -> Client:
    """A client of a server that is a function."""
    return Client("http://loci", "secret", httpx.MockTransport(answer), **options)


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits between attempts."""
    monkeypatch.setattr("time.sleep", lambda _: None)


WHOLE = sum(len(frame) for _, frame in TOLD)


@pytest.mark.parametrize("cut", range(0, WHOLE + 300, 37))
def test_each_word_once_wherever_it_is_cut(cut: int) -> None:
    for error in (httpx.ReadError, httpx.RemoteProtocolError, None):
        server = Server(cut, 150, cut // 2, error=error)
        with client(server) as loci:
            told = list(loci.stream(AGENT_ID, "Talk."))
        assert "".join(one.text for one in told if isinstance(one, AssistantMessage)) == "".join(WORDS)
        assert [type(one) for one in told][-2:] == [StopReason, UsageStatistics]
        assert [type(one) for one in told].count(StopReason) == 1
    # Before the run is known the same request is made again, afterwards the run is joined.
    first = server.asked[0][1]
    assert (first["background"], first["streaming"], first["stream_tokens"]) == (True, True, True)
    assert all(body["messages"] == first["messages"] for path, body in server.asked if path.endswith("messages"))
    assert {path for path, _ in server.asked[1:]} <= {f"/v1/runs/{RUN_ID}/stream", f"/v1/agents/{AGENT_ID}/messages"}


def test_a_stream_that_the_server_breaks_off_goes_on() -> None:
    broken = [
        chunk(None, message_type="stop_reason", stop_reason="error"),
        chunk(None, message_type="error_message", error_type="stream_incomplete", message="gone"),
        b"data: [DONE]\n\n",
    ]

    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path.endswith("/messages"):
            return httpx.Response(200, content=b"".join([said(1, "Hel"), *broken]))
        return httpx.Response(200, content=b"".join([said(2, "lo"), *END]))

    with client(answer) as loci:
        told = list(loci.stream(AGENT_ID, "Talk."))
    assert [one.text for one in told if isinstance(one, AssistantMessage)] == ["Hel", "lo"]
    assert [one.reason for one in told if isinstance(one, StopReason)] == ["end_turn"]
    assert not any(isinstance(one, ErrorMessage) for one in told)


def test_a_failed_turn_is_told() -> None:
    failed = [
        chunk(None, message_type="stop_reason", stop_reason="llm_api_error"),
        chunk(4, message_type="error_message", error_type="llm_timeout", message="too slow", detail="504"),
        b"data: [DONE]\n\n",
    ]
    with client(lambda _: httpx.Response(200, content=b"".join(failed))) as loci:
        stopped, failure = loci.stream(AGENT_ID, "Talk.", conversation_id="conv-1")
    assert isinstance(stopped, StopReason)
    assert isinstance(failure, ErrorMessage)
    assert (failure.kind, failure.message, failure.detail) == ("llm_timeout", "too slow", "504")


def test_a_run_is_resumed() -> None:
    server = Server()
    with client(server) as loci:
        told = list(loci.resume(RUN_ID, starting_after=4))
    assert "".join(one.text for one in told if isinstance(one, AssistantMessage)) == "".join(WORDS[8:])
    assert server.asked == [(f"/v1/runs/{RUN_ID}/stream", {"starting_after": 4})]


def test_a_server_that_stays_away_is_given_up() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path.endswith("/messages"):
            return httpx.Response(200, stream=Losing(said(1, "Hel"), httpx.ReadError))
        return httpx.Response(503, json={"detail": "no replica"})

    with client(answer, patience=0.35) as loci, pytest.raises(Unreachable, match="503"):
        list(loci.stream(AGENT_ID, "Talk."))


def test_a_server_that_was_never_there_is_not_waited_for() -> None:
    def refuse(_: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused")

    with client(refuse, patience=1e6) as loci, pytest.raises(Unreachable, match="is `loci run` running there"):
        list(loci.stream(AGENT_ID, "Talk."))


# ------------------------------------------------------------------ refusals

BUSY = {"detail": "it is currently being processed", "run_id": RUN_ID}
PENDING = {"detail": {"code": "PENDING_APPROVAL", "message": "waiting", "pending_request_id": "message-1"}}
MODEL = {"error": {"type": "llm_rate_limit", "message": "slow down", "detail": None}}


@pytest.mark.parametrize(
    ("status", "body", "kind", "sentence"),
    [
        (404, {"detail": "Agent not found"}, NotFound, "404: Agent not found"),
        (401, {"detail": "Unauthorized"}, Unauthorized, "401: Unauthorized"),
        (422, {"detail": "[...]"}, InvalidRequest, "422"),
        (422, {"detail": [{"msg": "too short"}, "x"]}, InvalidRequest, "too short; x"),
        (409, BUSY, ConversationBusy, "currently being processed"),
        (409, PENDING, PendingApproval, "waiting"),
        (409, {"detail": "taken"}, ApiError, "taken"),
        (429, {"detail": "slow down"}, RateLimited, "slow down"),
        (429, MODEL, ModelFailed, "slow down"),
        (503, MODEL, ModelFailed, "slow down"),
        (500, [], ApiError, "500: "),
    ],
)
def test_refusals_are_typed(status: int, body: Any, kind: type[ApiError], sentence: str) -> None:
    with client(lambda _: httpx.Response(status, json=body)) as loci:
        for asking in (lambda: list(loci.stream(AGENT_ID, "hi")), lambda: loci.get_agent(AGENT_ID)):
            with pytest.raises(kind, match=sentence.replace("[", r"\[")) as refused:
                asking()
            assert (type(refused.value), refused.value.status, refused.value.body) == (kind, status, body)
    told = refused.value
    if isinstance(told, ConversationBusy):
        assert told.run_id == RUN_ID
    if isinstance(told, PendingApproval):
        assert told.request_id == "message-1"
    if isinstance(told, ModelFailed):
        assert told.kind == "llm_rate_limit"


def test_an_answer_that_is_no_json() -> None:
    with client(lambda _: httpx.Response(418, text="oops")) as loci, pytest.raises(ApiError, match="418: oops"):
        loci.get_agent("ada")


# ------------------------------------------------------------------ agents by name


def test_an_agent_by_id_or_by_name() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        assert request.headers["authorization"] == "Bearer secret"
        if request.url.path.endswith(AGENT_ID):
            return httpx.Response(200, json={"id": AGENT_ID})
        names = {"ada": 1, "bob": 2, "agent-smith": 1}
        agents = [
            {"id": f"agent-{one}", "created_at": "2026"} for one in range(names.get(request.url.params["name"], 0))
        ]
        return httpx.Response(200, json=agents)

    with client(answer) as loci:
        assert loci.get_agent(AGENT_ID)["id"] == AGENT_ID
        assert loci.get_agent("ada")["id"] == "agent-0"
        assert loci.get_agent("agent-smith")["id"] == "agent-0"
        with pytest.raises(NotFound, match="'eve'"):
            loci.get_agent("eve")
        with pytest.raises(AmbiguousName) as several:
            loci.get_agent("bob")
    assert "agent-0" in str(several.value)
    assert "agent-1" in str(several.value)
    assert several.value.agents == (("agent-0", "2026"), ("agent-1", "2026"))
