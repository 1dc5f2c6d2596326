"""Streams as clients read them, through every service: by ids, by browsers, by slow readers, by sockets, by our own."""

from __future__ import annotations

import asyncio
import json
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.asyncio.client import connect

from cli.streaming import (
    AmbiguousName,
    AssistantMessage,
    Client,
    ConversationBusy,
    InvalidRequest,
    NotFound,
    StopReason,
)
from cli.streaming.sse import Frame, frames
from tests.e2e.helpers import create, finished_run
from tests.e2e.stack import Stack
from tests.fakes.openai_server import OpenAIServer
from tests.fakes.script import Reply, ToolCall

MODEL = "openai/gpt-4o-mini"
WORDS = "".join(f"word{number} " for number in range(80))
NPM = Path(__file__).parent / "npm"
LS: dict[str, Any] = {"name": "ls", "description": "Lists.", "parameters": {"type": "object", "properties": {}}}


@pytest.fixture(scope="module")
def agent_id(stack: Stack) -> str:
    """An agent of the fake provider."""
    return create(stack.client(), MODEL, name="streams to clients")


def text(told: list[Frame]) -> str:
    """Returns the agent's text."""
    contents = [json.loads(frame.data) for frame in told if frame.data != "[DONE]"]
    return "".join(one["content"] for one in contents if one["message_type"] == "assistant_message")


def begun(stack: Stack, agent_id: str) -> str:
    """A background run."""
    run_id: str = (
        stack.client().agents.messages.create_async(agent_id, messages=[{"role": "user", "content": "Talk."}]).id
    )
    return run_id


@pytest.mark.skipif(shutil.which("node") is None, reason="Node is not installed")
@pytest.mark.skipif(not (NPM / "node_modules").is_dir(), reason="needs: npm ci --prefix tests/e2e/npm")
def test_ids_do_not_disturb_the_typescript_client(stack: Stack, agent_id: str, openai_fake: OpenAIServer) -> None:
    openai_fake.answer(lambda _: Reply(text=WORDS))
    command = ["node", "events.mjs", stack.url, agent_id]
    done = subprocess.run(command, cwd=NPM, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert seen == {
        "whole": WORDS,
        "resumed": WORDS,
        "ends": ["stop_reason", "usage_statistics"],
        "numbered": True,
    }


def test_a_browser_comes_back_again_and_again(stack: Stack, agent_id: str, openai_fake: OpenAIServer) -> None:
    openai_fake.answer(lambda _: Reply(text=WORDS, delta_delay=0.005))
    url, told, last = f"{stack.url}/v1/runs/{begun(stack, agent_id)}/stream", list[Frame](), ""
    with httpx.Client(timeout=60) as browser:
        for _ in range(1_000):
            headers = {"last-event-id": last} if last else {}
            with browser.stream("GET", url, headers=headers) as reply:
                if reply.status_code == 204:
                    break
                # It is cut off after every few events.
                for count, frame in enumerate(frames(reply.iter_lines())):
                    told.append(frame)
                    last = last if frame.id is None else str(frame.id)
                    if count == 12:
                        break
    assert text(told) == WORDS
    assert told[-1].data == "[DONE]"
    numbers = [frame.id for frame in told if frame.id is not None]
    assert numbers == sorted(set(numbers))


def test_a_reader_that_does_not_read_holds_nobody_up(stack: Stack, agent_id: str, openai_fake: OpenAIServer) -> None:
    # More than a connection, gRPC's windows and the agent's backlog hold between them.
    pieces = [f"{number} " + "x" * 400 + " " for number in range(12_000)]
    openai_fake.answer(lambda _: Reply(text="".join(pieces), deltas=pieces))
    client, run_id = stack.client(), begun(stack, agent_id)
    with socket.create_connection(("127.0.0.1", stack.port)) as silent:
        silent.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        silent.settimeout(60)
        request = f"GET /v1/runs/{run_id}/stream HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"
        silent.sendall(request.encode())
        assert finished_run(client, run_id).status == "completed"
        # It reads at last, a little, and is cut off.
        head = b""
        while len(head) < 100_000:
            more = silent.recv(65_536)
            assert more, head[:1_000]
            head += more
    seen = list(frames(_body(head).decode().splitlines()))
    last = next(frame.id for frame in reversed(seen) if frame.id is not None)
    while seen[-1].id != last:
        seen.pop()
    rest = httpx.get(f"{stack.url}/v1/runs/{run_id}/stream", headers={"last-event-id": str(last)}, timeout=60)
    assert text(seen) + text(list(frames(rest.text.splitlines()))) == "".join(pieces)


def _body(answer: bytes) -> bytes:
    """Returns the part of a chunked body that has come."""
    _, _, rest = answer.partition(b"\r\n\r\n")
    body = b""
    while b"\r\n" in rest:
        size, _, rest = rest.partition(b"\r\n")
        body, rest = body + rest[: int(size, 16)], rest[int(size, 16) + 2 :]
    # A last line may be cut off.
    return body[: body.rfind(b"\n\n") + 2]


async def test_a_socket_through_every_service(stack: Stack, openai_fake: OpenAIServer) -> None:
    own = create(stack.client(), MODEL, name="sockets")
    url = f"{stack.url.replace('http', 'ws')}/v1/agents/{own}/ws"

    async def until(kind: str) -> list[dict[str, Any]]:
        heard = [json.loads(await talk.recv())]
        while heard[-1].get("type") != kind:
            heard.append(json.loads(await talk.recv()))
        return heard

    def said(heard: list[dict[str, Any]]) -> str:
        return "".join(one["content"] for one in heard if one.get("message_type") == "assistant_message")

    async with asyncio.timeout(60), connect(url) as talk:
        openai_fake.reply(Reply(text="I look.", calls=(ToolCall("ls", {}),)), Reply(text="It is empty."))
        sent = {"type": "send", "id": "1", "input": "Look.", "client_tools": [LS], "stream_tokens": True}
        await talk.send(json.dumps(sent))
        *heard, end = await until("end")
        assert (heard[0]["type"], said(heard), end["stop_reason"]) == ("accepted", "I look.", "requires_approval")
        asked = next(one for one in heard if one.get("message_type") == "approval_request_message")
        await talk.send(json.dumps({"type": "send", "input": "And?"}))
        [refused] = await until("error")
        assert (refused["status"], refused["detail"]["code"]) == (409, "PENDING_APPROVAL")
        returned = {
            "type": "tool",
            "tool_call_id": asked["tool_call"]["tool_call_id"],
            "tool_return": "",
            "status": "success",
        }
        await talk.send(json.dumps({"type": "approve", "approvals": [returned], "client_tools": [LS]}))
        *heard, end = await until("end")
        assert (said(heard), end["stop_reason"]) == ("It is empty.", "end_turn")
        openai_fake.answer(lambda _: Reply(text=WORDS, delta_delay=0.02))
        await talk.send(json.dumps({"type": "send", "input": "Talk.", "stream_tokens": True}))
        heard = await until("accepted")
        run_id = heard[-1]["run_id"]
        heard = [json.loads(await talk.recv()) for _ in range(10)]
    # The socket is closed, the run goes on, and another goes on with it.
    async with asyncio.timeout(60), connect(url) as talk:
        resume = {"type": "resume", "run_id": run_id, "starting_after": heard[-1]["seq_id"]}
        await talk.send(json.dumps(resume))
        assert said(heard) + said(await until("end")) == WORDS
        # The rest never comes.
        model = openai_fake.gate()
        openai_fake.answer(lambda _: Reply(text=WORDS, gate=model, gate_after=2))
        await talk.send(json.dumps({"type": "send", "input": "Talk."}))
        run_id = (await until("accepted"))[-1]["run_id"]
        await talk.send(json.dumps({"type": "cancel", "run_id": run_id}))
        # The run may have ended before its cancelling is answered.
        heard = await until("cancelling")
        assert heard[-1] == {"type": "cancelling", "id": None, "runs": {run_id: "cancelled"}}
        ends = [one for one in heard if one.get("type") == "end"] or (await until("end"))[-1:]
        assert ends[0]["stop_reason"] == "cancelled"


@contextmanager
def cutting(port: int, after: int) -> Iterator[int]:
    """A port that leads to `port`, and cuts each connection when so many bytes have come back by it."""
    listening = socket.create_server(("127.0.0.1", 0))

    def lead(near: socket.socket) -> None:
        with near, socket.create_connection(("127.0.0.1", port)) as far:
            threading.Thread(target=copy, args=(near, far, 1 << 30), daemon=True).start()
            copy(far, near, after)
            for end in (near, far):
                with suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)

    def copy(source: socket.socket, to: socket.socket, left: int) -> None:
        with suppress(OSError):
            while left > 0 and (data := source.recv(min(left, 4_096))):
                to.sendall(data)
                left -= len(data)

    def serve() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=lead, args=(listening.accept()[0],), daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield listening.getsockname()[1]
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()


def test_our_own_client_over_a_line_that_is_cut(stack: Stack, agent_id: str, openai_fake: OpenAIServer) -> None:
    openai_fake.answer(lambda _: Reply(text=WORDS, delta_delay=0.005))
    with cutting(stack.port, 6_000) as port, Client(f"http://127.0.0.1:{port}") as loci:
        told = list(loci.stream(agent_id, "Talk."))
    assert "".join(one.text for one in told if isinstance(one, AssistantMessage)) == WORDS
    assert [one.reason for one in told if isinstance(one, StopReason)] == ["end_turn"]
    said = [one for one in told if isinstance(one, AssistantMessage)]
    known = said[: len(said) // 2]
    run_id, middle = known[-1].run_id, known[-1].seq_id
    assert run_id is not None
    assert middle is not None
    with Client(stack.url) as loci:
        rest = [one.text for one in loci.resume(run_id, starting_after=middle) if isinstance(one, AssistantMessage)]
    assert "".join([*(one.text for one in known), *rest]) == WORDS


def test_our_own_client_is_refused_in_types(stack: Stack, agent_id: str, openai_fake: OpenAIServer) -> None:
    model = openai_fake.gate()
    openai_fake.answer(lambda _: Reply(text=WORDS, gate=model))
    sdk = stack.client()
    others = [create(sdk, MODEL, name="twice") for _ in range(2)]
    with Client(stack.url) as loci:
        assert loci.get_agent("streams to clients")["id"] == loci.get_agent(agent_id)["id"] == agent_id
        with pytest.raises(AmbiguousName) as several:
            loci.get_agent("twice")
        assert {known for known, _ in several.value.agents} == set(others)
        with pytest.raises(NotFound):
            loci.get_agent("nobody of that name")
        with pytest.raises(InvalidRequest, match="is called `model` now"):
            loci.create_agent(llm="gpt-4")
        with pytest.raises(InvalidRequest, match="is called `content` now"):
            list(loci.stream(agent_id, [{"role": "user", "text": "hi"}]))
        run_id = begun(stack, agent_id)
        model.wait_reached()
        with pytest.raises(ConversationBusy) as busy:
            list(loci.stream(agent_id, "Hello?", on_busy="reject"))
        assert busy.value.run_id == run_id
        sdk.agents.messages.cancel(agent_id)
        finished_run(sdk, run_id)
