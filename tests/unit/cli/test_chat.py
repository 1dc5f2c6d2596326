"""The terminal's view of a turn, and the stream it comes from."""

from __future__ import annotations

import json
from collections.abc import Callable

import httpx
import pytest

from cli.chat import Screen, agent_for
from cli.errors import CliError
from cli.streaming import Client
from cli.streaming.events import Json, event


def shown(*turn: Json) -> str:
    screen = Screen(colour=False)
    return "".join(screen.text(event(one)) for one in turn) + screen.end()


def test_deltas_of_one_message_run_on() -> None:
    assert (
        shown(
            {"message_type": "reasoning_message", "reasoning": "hm"},
            {"message_type": "assistant_message", "content": "Hel"},
            {"message_type": "ping"},
            {"message_type": "assistant_message", "content": [{"type": "text", "text": "lo"}]},
            {"message_type": "stop_reason", "stop_reason": "end_turn"},
        )
        == "hm\nHello\n"
    )


def test_a_tool_call_shows_its_arguments_and_its_return() -> None:
    assert (
        shown(
            {
                "message_type": "tool_call_message",
                "tool_calls": {"tool_call_id": "1", "name": "roll", "arguments": '{"n"'},
            },
            {"message_type": "tool_call_message", "tool_calls": {"tool_call_id": "1", "arguments": ": 6}"}},
            {
                "message_type": "tool_call_message",
                "tool_calls": [{"tool_call_id": "2", "name": "x", "arguments": "{}"}],
            },
            {"message_type": "tool_return_message", "status": "success", "tool_return": "4"},
            {"message_type": "tool_return_message", "status": "error", "tool_return": "no"},
        )
        == '  roll {"n": 6}\n  x {}\n  = 4\n  error: no\n'
    )


def test_a_reply_that_is_made_again() -> None:
    void = {"message_type": "ping", "attempt_abandoned": {"step_id": "step-1", "message_id": None, "attempt": 1}}
    again = "Hel\n(the model broke off and begins again)\nHello\n"
    said = [{"message_type": "assistant_message", "content": text} for text in ("Hel", "Hello")]
    assert shown(said[0], void, said[1]) == again


def test_an_error_and_an_odd_ending_are_told() -> None:
    assert (
        shown(
            {"message_type": "assistant_message", "content": "Hm"},
            {"message_type": "stop_reason", "stop_reason": "max_steps"},
            {"message_type": "error_message", "message": "it broke", "detail": "badly"},
        )
        == "Hm\n(stopped: max_steps)\nerror: it broke badly\n"
    )


def client(answer: Callable[[httpx.Request], httpx.Response]) -> Client:
    return Client("http://loci", "secret", httpx.MockTransport(answer))


def test_an_agent_is_found_by_name_or_made() -> None:
    asked: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(f"{request.method} {request.url.raw_path.decode()}")
        assert request.headers["authorization"] == "Bearer secret"
        if request.method == "POST":
            return httpx.Response(200, json={"id": "agent-2", **json.loads(request.content)})
        return httpx.Response(200, json=[])

    with client(answer) as server:
        assert agent_for(server, "ada")["name"] == "ada"
        assert agent_for(server, None)["name"] == "loci"
    assert asked[:2] == ["GET /v1/agents/?name=ada&limit=10", "POST /v1/agents/"]


@pytest.mark.parametrize(
    ("status", "body", "line"),
    [
        (404, '{"detail": "Agent not found"}', "404: Agent not found"),
        (502, "oops", "502: oops"),
        (422, '{"detail": [{"msg": "too short"}]}', "422: too short"),
        (500, "[]", "500: "),
    ],
)
def test_a_refusal_is_one_line(status: int, body: str, line: str) -> None:
    with client(lambda request: httpx.Response(status, text=body)) as server, pytest.raises(CliError, match=line):
        agent_for(server, "agent-1")


def test_no_server_is_one_line() -> None:
    def refuse(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused")

    with client(refuse) as server, pytest.raises(CliError, match="is `loci run` running there"):
        agent_for(server, None)
