"""Troubles that Loci must withstand: providers that hang, readers that stop reading, crowds, messages of megabytes."""

import asyncio
import socket
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from typing import Any

import httpx
import orjson
import psutil
import pytest

from services.common.ids import from_public
from tests.e2e.database import value
from tests.e2e.helpers import calls_that_run, create, docker_answers
from tests.e2e.stack import Stack
from tests.fakes.openai_server import OpenAIServer
from tests.fakes.script import Reply, RequestView, ToolCall, by_step
from tests.polling import wait_until

HANDLE = "openai/gpt-4o-mini"
# What a cancel does not reach hangs for minutes.
SOON = 30.0


@contextmanager
def at_once(call: Callable[[], Any]) -> Iterator["Future[Any]"]:
    """Makes a call in a thread of its own."""
    with ThreadPoolExecutor(1) as pool:
        yield pool.submit(call)


# Hung providers and tools ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("streams", "frames"),
    [(False, 0), (True, 0), (True, 3)],
    ids=["that never answers-False", "that never answers-True", "that stops in the middle-True"],
)
def test_a_cancel_reaches_a_provider(stack: Stack, openai_fake: OpenAIServer, streams: bool, frames: int) -> None:
    client = stack.client(timeout=60)
    agent_id = create(client, HANDLE)
    # It is never opened.
    model = openai_fake.gate()
    openai_fake.reply(Reply(text="I was about to say something longer", gate=model, gate_after=frames))
    body = {"messages": [{"role": "user", "content": "Well?"}], "stream_tokens": streams}
    path = f"{stack.url}/v1/agents/{agent_id}/messages{'/stream' if streams else ''}"
    with at_once(lambda: httpx.post(path, json=body, timeout=60)) as sending:
        model.wait_reached()
        assert "cancelled" in client.agents.messages.cancel(agent_id).values()
        answer = sending.result(SOON)
    assert '"cancelled"' in answer.text
    [request] = [each for each in openai_fake.requests if each.path.endswith("/chat/completions")]
    wait_until(lambda: request.outcome == "gone", SOON)
    assert client.agents.messages.create(agent_id, input="And now?").stop_reason.stop_reason == "end_turn"


FOREVER = '''
def forever(name: str):
    """Never come back.

    Args:
        name: What the process is called from now on.
    """
    with open("/proc/self/comm", "w") as comm:
        comm.write(name)
    while True:
        pass
'''


def processes_named(name: str) -> list[int]:
    """The living processes of this machine with that name, in a sandbox or out of it."""
    living = (each for each in psutil.process_iter(["name", "status"]) if each.info["status"] != psutil.STATUS_ZOMBIE)
    return [each.pid for each in living if each.info["name"] == name]


def uses_containers(stack: Stack) -> bool:
    """Returns whether an engine answers, which then has the tools of this stack."""
    return stack.environment.get("LOCI_SANDBOX") != "bubblewrap" and docker_answers(stack.environment)


@pytest.mark.sandbox
def test_a_cancel_kills_a_sandbox(stack: Stack, openai_fake: OpenAIServer) -> None:
    client = stack.client(timeout=60)
    tool = client.tools.upsert(source_code=FOREVER)
    agent_id = create(client, HANDLE, tool_ids=[tool.id])
    # By its name: the pool starts another worker when a call takes long, and that one waits on after the cancel.
    name = f"f{uuid.uuid4().hex[:12]}"
    openai_fake.rules(*by_step(Reply(calls=(ToolCall("forever", {"name": name}),)), Reply(text="I see.")))
    with at_once(lambda: client.agents.messages.create(agent_id, input="Go.")) as sending:
        wait_until(lambda: calls_that_run(stack, agent_id))
        wait_until(lambda: uses_containers(stack) or processes_named(name))
        client.agents.messages.cancel(agent_id)
        assert sending.result(SOON).stop_reason.stop_reason == "cancelled"
        wait_until(lambda: not processes_named(name), SOON)
    openai_fake.rules()
    assert client.agents.messages.create(agent_id, input="And now?").stop_reason.stop_reason == "end_turn"


# Readers that stop reading ---------------------------------------------------------------------------------

# What a model streams in five seconds, more than the buffers between it and a client hold. The agent service's
# test_withstand_readers.py has 50,000 of them, which the model gateway would not put together.
DELTAS, LONG = 5_000, 600
GROWTH = 50 * 1024 * 1024


def memory(stack: Stack) -> dict[str, int]:
    """Resident bytes of the processes that a stream passes."""
    return {name: psutil.Process(stack.pid(name)).memory_info().rss for name in ("agent", "gateway")}


@contextmanager
def silent_reader(stack: Stack, path: str, body: Any) -> Iterator[socket.socket]:
    """A client that asks for a stream and does not read it."""
    content = orjson.dumps(body)
    head = f"POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    with closing(socket.socket()) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        connection.connect(("127.0.0.1", stack.port))
        connection.sendall(f"{head}content-length: {len(content)}\r\n\r\n".encode() + content)
        yield connection


def rest_of(connection: socket.socket) -> bytes:
    """All that comes, up to the end of the stream."""
    connection.settimeout(60)
    received = bytearray()
    while b"data: [DONE]" not in received[-200:]:
        more = connection.recv(1 << 20)
        assert more, received[-500:]
        received += more
    return bytes(received)


def test_a_reader_that_stops_reading(stack: Stack, openai_fake: OpenAIServer) -> None:
    client = stack.client(timeout=60)
    agent_id = create(client, HANDLE)
    said = [f"{number} ".ljust(LONG, "x") + " " for number in range(DELTAS)]
    openai_fake.reply(Reply(text="Warm."), Reply(deltas=said, delta_delay=0.0001))
    client.agents.messages.create(agent_id, input="Warm up.")
    before = memory(stack)
    body = {"messages": [{"role": "user", "content": "Talk."}], "stream_tokens": True}
    path = f"/v1/agents/{agent_id}/messages/stream"
    most = before
    with silent_reader(stack, path, body) as silent:
        wait_until(lambda: len(openai_fake.bodies("/chat/completions")) == 2)
        [run] = client.runs.list(agent_id=agent_id, active=True)
        with at_once(lambda: httpx.post(f"{stack.url}/v1/runs/{run.id}/stream", json={}, timeout=60).text) as other:
            while not other.done():
                most = {name: max(most[name], size) for name, size in memory(stack).items()}
                time.sleep(0.1)
        assert client.runs.retrieve(run.id).status == "completed"
        most = {name: max(most[name], size) for name, size in memory(stack).items()}
        read = other.result()
        assert (spoken(read), read.rstrip().endswith("data: [DONE]")) == ("".join(said), True)
        # Who reads again at last is told the rest, too.
        late = rest_of(silent).decode()
    assert spoken(late) == "".join(said)
    assert {name: most[name] - before[name] < GROWTH for name in most} == dict.fromkeys(most, True), (before, most)
    assert client.agents.messages.create(agent_id, input="And now?").stop_reason.stop_reason == "end_turn"


def spoken(stream: str) -> str:
    """Returns the agent's text in a stream; of several starts the last."""
    frames = [orjson.loads(line[6:]) for line in stream.splitlines() if line.startswith("data: {")]
    return "".join(frame["content"] for frame in frames if frame["message_type"] == "assistant_message")


# Crowds ----------------------------------------------------------------------------------------------------

CONVERSATIONS = 60
AT_ONCE = 20


def take_notes(seen: RequestView) -> Reply:
    """Notes what it is told, once."""
    if seen.step:
        return Reply(text="Noted.")
    return Reply(calls=(ToolCall("memory_insert", {"label": "human", "new_string": seen.question}),))


async def crowd(stack: Stack, agent_id: str) -> None:
    """Has the crowd's conversations, each with one message, AT_ONCE at a time."""
    places = asyncio.Semaphore(AT_ONCE)
    async with httpx.AsyncClient(base_url=stack.url, timeout=60) as client:

        async def say(number: int) -> None:
            async with places:
                made = await client.post("/v1/conversations/", params={"agent_id": agent_id}, json={})
                said = {"input": f"note-{number:04d}.", "streaming": False}
                answer = await client.post(f"/v1/conversations/{made.json()['id']}/messages", json=said)
                assert answer.status_code == 200, answer.text
                assert answer.json()["stop_reason"]["stop_reason"] == "end_turn", answer.text

        await asyncio.gather(*map(say, range(CONVERSATIONS)))


def versions(stack: Stack, block_id: str) -> int:
    """Counts the versions of a block."""
    query = "SELECT count(*) FROM memory.block_history WHERE block_id = $1"
    count: int = value(stack, query, from_public("block", block_id))
    return count


def test_a_crowd_that_writes_one_block(stack: Stack, openai_fake: OpenAIServer) -> None:
    client = stack.client(timeout=60)
    agent_id = create(client, HANDLE)
    openai_fake.answer(take_notes)
    before = versions(stack, client.agents.blocks.retrieve("human", agent_id=agent_id).id)
    asyncio.run(crowd(stack, agent_id))
    block = client.agents.blocks.retrieve("human", agent_id=agent_id)
    lines = block.value.split()
    assert sorted(line for line in lines if line.startswith("note-")) == [
        f"note-{number:04d}." for number in range(CONVERSATIONS)
    ]
    assert versions(stack, block.id) - before == CONVERSATIONS


# Messages of megabytes -------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1_000_000, 3_900_000])
def test_a_message_of_megabytes(stack: Stack, openai_fake: OpenAIServer, size: int) -> None:
    client = stack.client(timeout=60)
    agent_id = create(client, HANDLE)
    said = ("Schopenhauer " + "word " * (size // 5))[:size]
    search = ToolCall("conversation_search", {"query": "Schopenhauer"})
    reply = client.agents.messages.create(agent_id, input=said)
    assert reply.stop_reason.stop_reason == "end_turn"
    [sent] = openai_fake.bodies("/chat/completions")
    assert 10_000 < len(orjson.dumps(sent)) < 600_000
    listed = client.agents.messages.list(agent_id, order="asc", limit=10)
    assert [one.content for one in listed if one.message_type == "user_message"] == [said]
    openai_fake.rules(*by_step(Reply(calls=(search,)), Reply(text="That one.")))
    reply = client.agents.messages.create(agent_id, input="What did I say first?")
    [found] = [one for one in reply.messages if one.message_type == "tool_return_message"]
    assert "Schopenhauer" in found.tool_return
    assert reply.stop_reason.stop_reason == "end_turn"
    client.agents.delete(agent_id)


@pytest.mark.parametrize(("size", "status"), [(4_000_001, 422), (33 * 1024 * 1024, 413)])
def test_a_message_that_is_too_long(stack: Stack, size: int, status: int) -> None:
    client = stack.client(timeout=60)
    agent_id = create(client, "loci/demo")
    answer = httpx.post(f"{stack.url}/v1/agents/{agent_id}/messages", json={"input": "x" * size}, timeout=60)
    assert answer.status_code == status, answer.text[:500]
    assert "at most" in answer.text or "larger than" in answer.text
    assert client.agents.messages.create(agent_id, input="Hello.").stop_reason.stop_reason == "end_turn"
    client.agents.delete(agent_id)
