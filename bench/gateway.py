"""`make bench ARGS=gateway`: what REST costs over the gRPC call behind it, lists of many agents, and open streams.

Each overhead is of pairs made in turn in one run: the same question over REST and over gRPC to the service's own
socket, with a signed context as the gateway sends it. The streams are turns whose model takes its time.
"""

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from typing import Any

import psutil

from bench.common import Report, context_signer, loci_with_provider
from bench.wire import Connection
from cli.home import Home
from gateway.access.auth import AUDIENCE, DEFAULT_ORGANIZATION, DEFAULT_USER
from loci.agent.v1 import agent_service_pb2, message_pb2, message_service_pb2
from loci.agent.v1.agent_service_pb2_grpc import AgentServiceStub
from loci.agent.v1.message_service_pb2_grpc import MessageServiceStub
from loci.memory.v1 import block_service_pb2
from loci.memory.v1.block_service_pb2_grpc import BlockServiceStub
from services.common.channel import make_channel
from services.common.context import CallContext, use_context
from tests.e2e.stack import Stack

AGENTS = 10_000
STREAMS = 1_000
PAIRS, WARM_UP = 400, 50
LISTS = 60
CREATORS = 8
BODY = {
    "model": "openai/gpt-4o-mini",
    "memory_blocks": [{"label": "human", "value": "Nothing yet."}, {"label": "persona", "value": "I am brief."}],
}
# Each stream is open for about this long, seconds: its reply has as many pieces.
STREAM_SECONDS = 40

Ask = Callable[[], Awaitable[Any]]


async def pairs(report: Report, name: str, rest: Ask, grpc: Ask) -> None:
    """Times both, one after the other, and what the first costs over the second."""
    taken: tuple[list[float], list[float]] = ([], [])
    for _ in range(WARM_UP + PAIRS):
        for ask, seconds in zip((rest, grpc), taken, strict=True):
            begin = time.perf_counter()
            await ask()
            seconds.append(time.perf_counter() - begin)
    over_rest, over_grpc = (sorted(1e3 * each for each in seconds[WARM_UP:]) for seconds in taken)
    for share, label in ((0.5, "p50"), (0.95, "p95")):
        place = int(share * PAIRS)
        report.add(f"{name}, REST, {label} ms", over_rest[place])
        report.add(f"{name}, REST over gRPC, {label} ms", over_rest[place] - over_grpc[place])


async def get(loci: Connection, path: str) -> Any:
    """Returns the JSON at `path`."""
    answer = await loci.request("GET", path)
    assert answer.status == 200, answer.body
    return answer.json()


async def timed(loci: Connection, path: str) -> tuple[float, Any]:
    """Seconds until the last byte of the answer, and what it says."""
    begin = time.perf_counter()
    answer = await loci.request("GET", path)
    seconds = time.perf_counter() - begin
    assert answer.status == 200, answer.body
    return seconds, answer.json()


async def create(loci: Connection) -> str:
    """Creates an agent with two blocks and the tools of its type; returns its id."""
    answer = await loci.request("POST", "/v1/agents/", BODY)
    assert answer.status == 200, answer.body
    return str(answer.json()["id"])


async def overheads(stack: Stack, home: Home, report: Report) -> None:
    """Measures an agent, a block, and a turn with one step."""
    agent_channel, memory_channel = (make_channel(f"unix://{home.socket(name)}") for name in ("agent", "memory"))
    agents, messages = AgentServiceStub(agent_channel), MessageServiceStub(agent_channel)
    blocks = BlockServiceStub(memory_channel)
    context = CallContext(DEFAULT_ORGANIZATION, DEFAULT_USER, "admin", AUDIENCE)
    signer = context_signer(home)
    async with Connection("127.0.0.1", stack.port) as loci:
        agent_id = await create(loci)
        block_id = (await get(loci, f"/v1/agents/{agent_id}"))["blocks"][0]["id"]
        body = {"messages": [{"role": "user", "content": "Hello."}]}
        hello = message_pb2.InputMessage(content=[message_pb2.ContentPart(text="Hello.")])
        # Ten turns with each agent, so that windows stay small.
        count = (WARM_UP + PAIRS) // 10
        of_rest = iter([await create(loci) for _ in range(count)] * 10)
        of_grpc = iter([await create(loci) for _ in range(count)] * 10)
        key = block_service_pb2.BlockKey(block_id=block_id)

        async def rest_turn() -> None:
            answer = await loci.request("POST", f"/v1/agents/{next(of_rest)}/messages", body)
            assert answer.status == 200, answer.body

        async def grpc_turn() -> None:
            turn = message_service_pb2.TurnRequest(agent_id=next(of_grpc), messages=[hello])
            await messages.SendMessages(message_service_pb2.SendMessagesRequest(turn=turn))

        with use_context(context, signer=signer):
            await pairs(
                report,
                "retrieve an agent",
                lambda: get(loci, f"/v1/agents/{agent_id}"),
                lambda: agents.GetAgent(agent_service_pb2.GetAgentRequest(agent_id=agent_id)),
            )
            await pairs(
                report,
                "retrieve a block",
                lambda: get(loci, f"/v1/blocks/{block_id}"),
                lambda: blocks.GetBlock(block_service_pb2.GetBlockRequest(key=key)),
            )
            await pairs(report, "a turn of one step", rest_turn, grpc_turn)
    for channel in (agent_channel, memory_channel):
        await channel.close()


async def many_agents(stack: Stack, report: Report) -> None:
    """Creation until there are AGENTS, then pages of them."""
    async with Connection("127.0.0.1", stack.port) as loci:
        alone = []
        for _ in range(WARM_UP + PAIRS):
            begin = time.perf_counter()
            await create(loci)
            alone.append(time.perf_counter() - begin)
        report.spread("create an agent", alone[WARM_UP:])

        async def creator(number: int) -> None:
            async with Connection("127.0.0.1", stack.port) as own:
                for _ in range(number):
                    await create(own)

        begin = time.perf_counter()
        await asyncio.gather(*(creator((AGENTS - len(alone)) // CREATORS) for _ in range(CREATORS)))
        report.add(f"agents created per second, {CREATORS} clients", AGENTS / (time.perf_counter() - begin))
    relations = "include=agent.blocks&include=agent.tools"
    # Another connection: the first has been idle for longer than it is kept.
    async with Connection("127.0.0.1", stack.port) as loci:
        for limit in (10, 50):
            for name, path in (
                ("with blocks and tools", f"/v1/agents/?limit={limit}&{relations}"),
                ("with everything", f"/v1/agents/?limit={limit}"),
            ):
                taken = []
                for _ in range(10 + LISTS):
                    seconds, page = await timed(loci, path)
                    taken.append(seconds)
                    assert len(page) == limit
                    assert page[0]["blocks"]
                report.spread(f"{limit} of {AGENTS:,} agents {name}", taken[10:])
        after, taken = "", []
        for _ in range(LISTS):
            seconds, page = await timed(loci, f"/v1/agents/?limit=50&{relations}{after}")
            taken.append(seconds)
            after = f"&after={page[-1]['id']}"
        report.spread("the same, page after page", taken)


async def open_streams(stack: Stack, fake_port: int, report: Report) -> None:
    """Memory of the gateway while STREAMS turns stream at a time, and whether each reader got all of its own."""
    text = " ".join(f"word{number}" for number in range(STREAM_SECONDS))
    async with Connection("127.0.0.1", fake_port) as control:
        script = {"default": {"text": text, "delta_delay": 1.0}}
        assert (await control.request("POST", "/_script", script)).status == 200
    async with Connection("127.0.0.1", stack.port) as loci:
        agent_ids = [agent["id"] for agent in await get(loci, f"/v1/agents/?limit={STREAMS}")]
    process = gateway_process(stack)
    report.add("gateway, resident before the streams, MB", process.memory_info().rss / 1e6)
    body = {"messages": [{"role": "user", "content": "Go on."}], "streaming": True, "stream_tokens": True}
    whole = 0

    async def reader(connection: Connection, agent_id: str) -> None:
        nonlocal whole
        answer = await connection.request("POST", f"/v1/agents/{agent_id}/messages", body)
        assert answer.status == 200, answer.body
        whole += answer.body.rstrip().endswith(b"data: [DONE]") and b'"end_turn"' in answer.body

    async with AsyncExitStack() as connections:
        readers = []
        for agent_id in agent_ids:
            connection = await connections.enter_async_context(Connection("127.0.0.1", stack.port))
            readers.append(asyncio.create_task(reader(connection, agent_id)))
            await asyncio.sleep(0.005)
        seen = []
        while not all(task.done() for task in readers):
            seen.append(process.memory_info().rss / 1e6)
            await asyncio.sleep(0.5)
        await asyncio.gather(*readers)
    report.add(f"gateway, resident with {STREAMS:,} open streams, most, MB", max(seen))
    report.add(f"gateway, resident with {STREAMS:,} open streams, median, MB", statistics.median(seen))
    report.add("streams that came whole", whole)


def gateway_process(stack: Stack) -> psutil.Process:
    """Returns the gateway's process of a stack."""
    return next(
        child
        for child in stack.supervisor.children(recursive=True)
        if child.cmdline()[-2:] == ["-m", "gateway"] and "python" in child.name()
    )


async def measure(stack: Stack, fake_port: int) -> None:
    """Measures everything in one run."""
    report = Report()
    async with Connection("127.0.0.1", fake_port) as control:
        assert (await control.request("POST", "/_script", {"default": {"text": "Short."}})).status == 200
    await overheads(stack, Home(stack.home), report)
    await many_agents(stack, report)
    await open_streams(stack, fake_port, report)


def main(arguments: Sequence[str]) -> None:
    """Prints the table."""
    with loci_with_provider() as (stack, port):
        asyncio.run(measure(stack, port))
