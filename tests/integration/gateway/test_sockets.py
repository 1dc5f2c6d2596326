"""WebSockets through uvicorn and a real client library: turns, several at once, cancelled, approved, gone on with."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import orjson
import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosedError, InvalidStatus

from gateway.sockets.agent_socket import MOST_RUNS
from gateway.sockets.frames import Frames
from loci.agent.v1 import (
    agent_pb2,
    conversation_pb2,
    conversation_service_pb2,
    group_pb2,
    group_service_pb2,
    message_pb2,
    message_service_pb2,
    run_pb2,
    run_service_pb2,
)
from services.common.errors import Aborted, FailedPrecondition, NotFound, Unavailable
from tests.integration.gateway import samples
from tests.integration.gateway.conftest import Edge, StartGateway
from tests.integration.gateway.samples import AGENT_ID, RUN_ID, attached, ended, event, said
from tests.integration.gateway.scripted import Backend
from tests.integration.gateway.test_background import CONVERSATION_ID, OPENING, resumable
from tests.integration.gateway.test_turns import fails, streams

OTHER_RUN = "run-00000000-0000-4000-8000-0000000000ff"
OTHER_AGENT = "agent-00000000-0000-4000-8000-0000000000ff"
GROUP_ID = "group-00000000-0000-4000-8000-0000000000aa"
GROUP_AGENT = GROUP_ID.replace("group-", "agent-")


@pytest.fixture(autouse=True)
def conversation(backend: Backend) -> None:
    """The conversation's agent is known, and the run is one of its conversation."""
    found = conversation_pb2.Conversation(id=CONVERSATION_ID, agent_id=AGENT_ID)
    backend.on("GetConversation", lambda _: conversation_service_pb2.GetConversationResponse(conversation=found))


class Talk:
    """A socket's other end."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection

    async def say(self, **frame: Any) -> None:
        """Sends a frame."""
        await self.connection.send(orjson.dumps(frame).decode())

    async def hear(self) -> dict[str, Any]:
        """The next frame, which is of the documented form."""
        async with asyncio.timeout(20):
            frame: dict[str, Any] = orjson.loads(await self.connection.recv())
        Frames.model_validate({"client": {"type": "ping"}, "server": frame})
        return frame

    async def until(self, kind: str) -> list[dict[str, Any]]:
        """The frames up to one of this type."""
        heard = [await self.hear()]
        while heard[-1].get("type") != kind:
            heard.append(await self.hear())
        return heard


@asynccontextmanager
async def talking(edge: Edge, path: str = f"agents/{AGENT_ID}/ws", **options: Any) -> AsyncIterator[Talk]:
    """A socket to the gateway."""
    async with connect(f"{edge.url.replace('http', 'ws')}/v1/{path}", **options) as connection:
        yield Talk(connection)


def text(frames: list[dict[str, Any]]) -> str:
    """What the agent said."""
    return "".join(frame["content"] for frame in frames if frame.get("message_type") == "assistant_message")


async def test_a_turn(edge: Edge, backend: Backend) -> None:
    streams(backend, attached(), *OPENING)
    async with talking(edge) as talk:
        await talk.say(type="send", id="a", input="hello", stream_tokens=True, max_steps=3)
        accepted, *events, end = await talk.until("end")
    assert accepted == {"type": "accepted", "id": "a", "run_id": RUN_ID}
    assert text(events) == "Hello AdaBye"
    assert [one["seq_id"] for one in events] == [4, 5, 6, 9, 10, 11, 11]
    assert {one["run_id"] for one in events} == {RUN_ID}
    assert [one["message_type"] for one in events[-2:]] == ["stop_reason", "usage_statistics"]
    assert (end["run_id"], end["stop_reason"], end["usage"]["total_tokens"]) == (RUN_ID, "end_turn", 10)
    [request] = backend.requests("StreamMessages")
    assert (request.turn.agent_id, request.turn.conversation_id, request.turn.max_steps) == (AGENT_ID, "", 3)
    assert (request.turn.background, request.stream_tokens) == (True, True)


async def test_by_steps_in_a_conversation(edge: Edge, backend: Backend) -> None:
    streams(backend, attached(), *OPENING)
    async with talking(edge, f"conversations/{CONVERSATION_ID}/ws/") as talk:
        await talk.say(type="send", messages=[{"role": "user", "content": "hello", "otid": "o-1"}])
        heard = await talk.until("end")
    assert heard[0] == {"type": "accepted", "id": None, "run_id": RUN_ID}
    assert [one["content"] for one in heard if one.get("message_type") == "assistant_message"] == ["Hello Ada", "Bye"]
    [request] = backend.requests("StreamMessages")
    assert request.turn.conversation_id == CONVERSATION_ID


@pytest.mark.parametrize(("kind", "speaker"), [("round_robin", GROUP_AGENT), ("sleeptime", AGENT_ID)])
async def test_a_group(edge: Edge, backend: Backend, kind: str, speaker: str) -> None:
    """Turns are the group's; its runs are those of the agent that stands for it, or of its manager."""
    group = group_pb2.Group(id=GROUP_ID, manager_type=kind, manager_agent_id=AGENT_ID)
    backend.on("GetGroup", lambda _: group_service_pb2.GetGroupResponse(group=group))
    run = run_pb2.Run(id=RUN_ID, agent_id=speaker)
    backend.on("GetRun", lambda _: run_service_pb2.GetRunResponse(run=run))
    backend.on("CancelRuns", lambda _: run_service_pb2.CancelRunsResponse(runs=[run]))
    streams(backend, attached(), *OPENING)
    async with talking(edge, f"groups/{GROUP_ID}/ws") as talk:
        await talk.say(type="send", id="a", input="hello", stream_tokens=True)
        assert text(await talk.until("end")) == "Hello AdaBye"
        await talk.say(type="cancel", run_id=RUN_ID)
        assert (await talk.hear())["runs"] == {RUN_ID: "cancelled"}
    assert backend.requests("StreamMessages")[0].turn.agent_id == GROUP_ID
    assert backend.requests("CancelRuns")[0].agent_id == speaker


async def test_several_runs_interleave_on_one_socket(edge: Edge, backend: Backend) -> None:
    gates: list[asyncio.Event] = [asyncio.Event(), asyncio.Event()]
    runs = [RUN_ID, OTHER_RUN]

    async def answer(request: Any) -> AsyncIterator[Any]:
        number = int(request.turn.messages[0].content[0].text)
        first = event(attached=message_service_pb2.RunAttached(run_id=runs[number], started=True))
        words = said(f"I am {number}")
        words.run_id = runs[number]
        for one in (first, event(1, message=words), ended(2)):
            yield message_service_pb2.StreamMessagesResponse(event=one)
            if one is first:
                await gates[number].wait()

    backend.on("StreamMessages", answer)
    async with talking(edge) as talk:
        await talk.say(type="send", id="0", input="0")
        assert (await talk.hear())["run_id"] == runs[0]
        await talk.say(type="send", id="1", input="1")
        assert (await talk.hear())["run_id"] == runs[1]
        await talk.say(type="ping", id="p")
        assert await talk.hear() == {"type": "pong", "id": "p"}
        for number in (1, 0):
            gates[number].set()
            heard = await talk.until("end")
            assert {one["run_id"] for one in heard} == {runs[number]}
            assert text(heard) == f"I am {number}"


async def test_calls_that_wait_are_answered(edge: Edge, backend: Backend) -> None:
    streams(backend, attached(), ended(2))
    answers = [
        {"type": "approval", "tool_call_id": "c1", "approve": False, "reason": "private"},
        {"type": "tool", "tool_call_id": "c2", "tool_return": "42", "status": "success"},
    ]
    async with talking(edge) as talk:
        await talk.say(type="approve", id="x", approvals=answers, client_tools=[{"name": "ls"}])
        assert (await talk.until("end"))[0]["type"] == "accepted"
    [request] = backend.requests("StreamMessages")
    [message] = request.turn.messages
    assert message.role == message_pb2.MESSAGE_ROLE_APPROVAL
    assert (message.answers[0].decision.reason, message.answers[1].tool_return.tool_return) == ("private", "42")
    assert request.turn.options.client_tools[0].name == "ls"


async def test_runs_are_cancelled(edge: Edge, backend: Backend) -> None:
    run = run_pb2.Run(id=RUN_ID, agent_id=AGENT_ID, conversation_id=CONVERSATION_ID)
    backend.on("GetRun", lambda _: run_service_pb2.GetRunResponse(run=run))
    backend.on("CancelRuns", lambda _: run_service_pb2.CancelRunsResponse(runs=[run]))
    async with talking(edge, f"conversations/{CONVERSATION_ID}/ws") as talk:
        await talk.say(type="cancel", id="all")
        assert await talk.hear() == {"type": "cancelling", "id": "all", "runs": {RUN_ID: "cancelled"}}
        await talk.say(type="cancel", run_id=RUN_ID)
        assert (await talk.hear())["runs"] == {RUN_ID: "cancelled"}
        backend.on("CancelRuns", nothing_to_cancel)
        await talk.say(type="cancel", id="late")
        refused = await talk.hear()
    assert (refused["type"], refused["status"], refused["id"]) == ("error", 409, "late")
    everything, one, _ = backend.requests("CancelRuns")
    assert (everything.agent_id, everything.conversation_id, list(everything.run_ids)) == (
        AGENT_ID,
        CONVERSATION_ID,
        [],
    )
    assert list(one.run_ids) == [RUN_ID]


async def nothing_to_cancel(_: Any) -> None:
    """No run is active."""
    raise FailedPrecondition("No active runs to cancel", reason="NOTHING_TO_CANCEL")


@pytest.mark.parametrize("after", [0, 4, 6, 7, 9, 11])
async def test_a_run_is_gone_on_with(edge: Edge, backend: Backend, after: int) -> None:
    resumable(backend)
    run = run_pb2.Run(id=RUN_ID, agent_id=AGENT_ID)
    backend.on("GetRun", lambda _: run_service_pb2.GetRunResponse(run=run))
    async with talking(edge) as talk:
        await talk.say(type="resume", id="r", run_id=RUN_ID, starting_after=after)
        accepted, *events, end = await talk.until("end")
    known = {0: "", 4: "Hel", 6: "Hello Ada", 7: "Hello Ada", 9: "Hello AdaBy", 11: "Hello AdaBye"}[after]
    assert known + text(events) == "Hello AdaBye"
    assert (accepted["id"], end["stop_reason"]) == ("r", "end_turn")


@pytest.mark.parametrize("kind", ["resume", "cancel"])
async def test_runs_of_others_are_not_reached(edge: Edge, backend: Backend, kind: str) -> None:
    for run in (run_pb2.Run(id=RUN_ID, agent_id=OTHER_AGENT), run_pb2.Run(id=RUN_ID, agent_id=AGENT_ID)):
        backend.on("GetRun", lambda _, run=run: run_service_pb2.GetRunResponse(run=run))  # type: ignore[misc]
        async with talking(edge, f"conversations/{CONVERSATION_ID}/ws") as talk:
            await talk.say(type=kind, id="r", run_id=RUN_ID)
            refused = await talk.hear()
        assert (refused["type"], refused["status"]) == ("error", 404)
    assert not backend.requests("StreamRun")
    assert not backend.requests("CancelRuns")


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (NotFound("no such agent", reason="AGENT_NOT_FOUND"), 404, "Agent not found"),
        (Aborted("it runs", reason="CONVERSATION_BUSY"), 409, "is currently being processed"),
        (FailedPrecondition("a call waits", reason="APPROVAL_PENDING"), 409, "PENDING_APPROVAL"),
    ],
)
async def test_what_is_refused(edge: Edge, backend: Backend, error: Any, status: int, said: str) -> None:
    fails(backend, "StreamMessages", error)
    async with talking(edge) as talk:
        await talk.say(type="send", id="a", input="hi")
        refused = await talk.hear()
        assert (refused["type"], refused["id"], refused["status"]) == ("error", "a", status)
        assert said in str(refused["detail"])
        await talk.say(type="ping")
        assert (await talk.hear())["type"] == "pong"


async def test_a_failed_turn(edge: Edge, backend: Backend) -> None:
    failure = message_service_pb2.TurnError(error_type="llm_timeout", message="too slow", reason="LLM_TIMEOUT")
    turn_end = samples.turn_end()
    turn_end.stop_reason = agent_pb2.STOP_REASON_LLM_API_ERROR
    turn_end.error.CopyFrom(failure)
    streams(backend, attached(), event(4, end=turn_end))
    async with talking(edge) as talk:
        await talk.say(type="send", input="hi")
        heard = await talk.until("end")
    told = next(one for one in heard if one.get("message_type") == "error_message")
    assert (told["error_type"], told["message"], told["seq_id"]) == ("llm_timeout", "too slow", 5)
    assert heard[-1]["stop_reason"] == "llm_api_error"


async def test_events_that_break_off_are_told_with_the_way_on(start_gateway: StartGateway, backend: Backend) -> None:
    async def answer(_: Any) -> AsyncIterator[Any]:
        yield message_service_pb2.StreamMessagesResponse(event=attached())
        yield message_service_pb2.StreamMessagesResponse(event=event(3, delta=said("Hel")))
        raise Unavailable("gone", reason="PEER_UNAVAILABLE")

    backend.on("StreamMessages", answer)
    fails(backend, "StreamRun", Unavailable("gone", reason="PEER_UNAVAILABLE"))
    edge = await start_gateway(reattach_window=0.2)
    async with talking(edge) as talk:
        await talk.say(type="send", id="a", input="hi", stream_tokens=True)
        heard = await talk.until("error")
    assert text(heard) == "Hel"
    assert (heard[-1]["run_id"], heard[-1]["status"]) == (RUN_ID, 503)
    assert "resume" in heard[-1]["detail"]


DEEP = b'{"type":"send","input":' + b"[" * 5_000 + b"]" * 5_000 + b"}"
BAD: dict[str, tuple[bytes | str, int]] = {
    "empty": ("", 422),
    "not json": ("hello", 422),
    "no object": ("[1, 2]", 422),
    "null": ("null", 422),
    "no type": ("{}", 422),
    "unknown type": ('{"type": "shout"}', 422),
    "type of another kind": ('{"type": {"a": 1}}', 422),
    "nothing said": ('{"type": "send"}', 422),
    "said twice": ('{"type": "send", "input": "a", "messages": [{"role": "user", "content": "a"}]}', 422),
    "an older name": ('{"type": "send", "text": "a"}', 422),
    "nothing approved": ('{"type": "approve", "approvals": []}', 422),
    "no run": ('{"type": "resume"}', 422),
    "a wrong run": ('{"type": "resume", "run_id": "agent-1"}', 422),
    "a wrong place": (f'{{"type": "resume", "run_id": "{RUN_ID}", "starting_after": -1}}', 422),
    "nul": ('{"type": "send", "input": "a\\u0000b"}', 422),
    "nan": ('{"type": "send", "input": NaN}', 422),
    "deep": (DEEP, 422),
    "no utf-8": (b"\xff\xfe", 422),
    "large": (b'{"type":"send","input":"' + b"x" * 1_100_000 + b'"}', 413),
}


async def test_bad_frames_are_answered_and_the_socket_lives(start_gateway: StartGateway, backend: Backend) -> None:
    edge = await start_gateway(max_body_bytes=1_000_000)
    async with talking(edge) as talk:
        for name, (frame, status) in BAD.items():
            await talk.connection.send(frame)
            heard = await talk.hear()
            assert (heard["type"], heard["status"]) == ("error", status), name
        await talk.say(type="send", id="mine", stream_tokens="perhaps", input="x")
        assert (await talk.hear())["id"] == "mine"
        await talk.connection.send(b'{"type": "ping", "id": "bytes"}')
        assert await talk.hear() == {"type": "pong", "id": "bytes"}
    assert not backend.requests("StreamMessages")


async def test_a_frame_far_too_large_ends_the_socket(start_gateway: StartGateway) -> None:
    edge = await start_gateway(max_body_bytes=1_000_000)
    async with talking(edge) as talk:
        sending = asyncio.create_task(talk.connection.send(b"x" * 40_000_000))
        with pytest.raises(ConnectionClosedError) as closed:
            await talk.hear()
        # How the client's own sending ends is its library's affair.
        await asyncio.gather(sending, return_exceptions=True)
    # It is told while it still sends.
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1009


async def test_more_runs_than_one_socket_follows(edge: Edge, backend: Backend) -> None:
    gate = asyncio.Event()

    async def answer(_: Any) -> AsyncIterator[Any]:
        yield message_service_pb2.StreamMessagesResponse(event=attached())
        await gate.wait()
        yield message_service_pb2.StreamMessagesResponse(event=ended(2))

    backend.on("StreamMessages", answer)
    async with talking(edge) as talk:
        for _ in range(MOST_RUNS):
            await talk.say(type="send", input="hi")
            assert (await talk.hear())["type"] == "accepted"
        await talk.say(type="send", id="one more", input="hi")
        refused = await talk.hear()
        assert (refused["id"], refused["status"]) == ("one more", 429)
        gate.set()
        for _ in range(MOST_RUNS):
            await talk.until("end")


@pytest.mark.parametrize(
    ("path", "status"),
    [
        (f"agents/{OTHER_AGENT}/ws", 404),
        ("conversations/default/ws", 404),
        (f"conversations/{OTHER_AGENT}/ws", 404),
        ("agents/%00/ws", 422),
        (f"agents/{AGENT_ID}/wss", 404),
    ],
)
async def test_what_is_not_there_is_refused_before_the_handshake(
    edge: Edge, backend: Backend, path: str, status: int
) -> None:
    async def refuse(_: Any) -> None:
        raise NotFound("no such agent", reason="AGENT_NOT_FOUND")

    backend.on("GetAgent", refuse)
    with pytest.raises(InvalidStatus) as refused:
        async with talking(edge, path):
            pass
    assert refused.value.response.status_code in (status, 403 if path.endswith("wss") else status)


async def test_the_default_conversation_of_an_agent(edge: Edge, backend: Backend) -> None:
    streams(backend, attached(), ended(2))
    for path in (f"conversations/default/ws?agent_id={AGENT_ID}", f"conversations/{AGENT_ID}/ws"):
        async with talking(edge, path) as talk:
            await talk.say(type="send", input="hi")
            await talk.until("end")
    assert {(one.turn.agent_id, one.turn.conversation_id) for one in backend.requests("StreamMessages")} == {
        (AGENT_ID, "")
    }


async def test_the_password_is_asked_for(start_gateway: StartGateway, backend: Backend) -> None:
    streams(backend, attached(), ended(2))
    edge = await start_gateway(password="secret")
    with pytest.raises(InvalidStatus) as refused:
        async with talking(edge):
            pass
    assert refused.value.response.status_code == 401
    async with talking(edge, additional_headers={"authorization": "Bearer secret"}) as talk:
        await talk.say(type="send", input="hi")
        await talk.until("end")
    async with talking(edge, f"agents/{AGENT_ID}/ws?token=secret") as talk:
        await talk.say(type="ping")
        assert (await talk.hear())["type"] == "pong"


async def test_leaving_ends_no_run(start_gateway: StartGateway, backend: Backend) -> None:
    left = asyncio.Event()

    async def answer(_: Any) -> AsyncIterator[Any]:
        yield message_service_pb2.StreamMessagesResponse(event=attached())
        try:
            await asyncio.sleep(30)
        finally:
            left.set()

    backend.on("StreamMessages", answer)
    edge = await start_gateway(cancel_on_disconnect=True)
    async with talking(edge) as talk:
        await talk.say(type="send", input="hi")
        assert (await talk.hear())["type"] == "accepted"
    async with asyncio.timeout(20):
        await left.wait()
    assert not backend.requests("CancelRuns")


async def test_a_reader_that_does_not_read_is_cut_off_and_told_how_to_go_on(
    start_gateway: StartGateway, backend: Backend
) -> None:
    piece, told, given_up = "x" * 50_000, 0, asyncio.Event()

    async def answer(_: Any) -> AsyncIterator[Any]:
        nonlocal told
        yield message_service_pb2.StreamMessagesResponse(event=attached())
        try:
            for number in range(1, 2_000):
                told = number
                yield message_service_pb2.StreamMessagesResponse(event=event(number, delta=said(piece)))
        finally:
            given_up.set()

    backend.on("StreamMessages", answer)
    edge = await start_gateway(socket_stall=0.5)
    async with talking(edge, max_queue=1) as talk:
        await talk.say(type="send", input="hi", stream_tokens=True)
        assert (await talk.hear())["type"] == "accepted"
        # The gateway has waited, and takes no more.
        async with asyncio.timeout(20):
            await given_up.wait()
        # Most of the 100 MB was never taken from the agent service.
        assert told < 1_000
        with pytest.raises(ConnectionClosedError) as closed:
            await talk.until("nothing of this kind")
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1013
    assert "resume" in closed.value.rcvd.reason
    async with talking(edge) as talk:
        await talk.say(type="ping")
        assert (await talk.hear())["type"] == "pong"
