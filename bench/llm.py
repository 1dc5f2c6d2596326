"""`make bench ARGS="llm [--peer LITELLM]"`: what the llm gateway adds to a call, beside a raw call in the same run.

The llm gateway is the process that `make run` starts, called over gRPC on its socket as the agent service does; before
it a fake OpenAI in a process of its own. The load runs here, so its cost is within the figures. `--peer` names the
program of an installed LiteLLM proxy, which is then measured in the same way.
"""

import argparse
import asyncio
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import psutil

from bench.common import Report, context_signer, loci_with_provider
from bench.turns import HISTORY, REPLY, timed
from bench.wire import Connection
from cli.home import Home
from loci.llm.v1 import chat_pb2, chat_service_pb2
from loci.llm.v1.chat_service_pb2_grpc import ChatServiceStub
from services.common.channel import make_channel
from services.common.context import CallContext, use_context
from tests.e2e.stack import Stack, own_port
from tests.polling import wait_until

RATE, SECONDS = 200, 10.0
MODEL = "gpt-4o-mini"
MESSAGES = [*HISTORY, {"role": "user", "content": "Hello."}]
ROLES = {
    "system": chat_pb2.CHAT_ROLE_SYSTEM,
    "user": chat_pb2.CHAT_ROLE_USER,
    "assistant": chat_pb2.CHAT_ROLE_ASSISTANT,
}
TOKENS = "".join(f"word{number:03d} " for number in range(100)).strip()
SCRIPT = {
    "default": {"text": REPLY},
    "rules": [
        {"contains": "stream a hundred", "reply": {"text": TOKENS, "delta_delay": 0.01}},
        {"contains": "stream slowly", "reply": {"text": TOKENS, "delta_delay": 0.1}},
    ],
}
# 1,000 streams are opened within some seconds and are all open together after that.
OPEN_STREAMS, OPENED_PER_SECOND = 1_000, 250

Call = Callable[[], Awaitable[Any]]


class Gateway:
    """The llm gateway over gRPC."""

    def __init__(self, stub: Any) -> None:
        self._stub = stub

    async def whole(self) -> None:
        """A blocking call of 21 messages."""
        reply = await self._stub.Generate(chat_service_pb2.GenerateRequest(request=_request("Hello.")))
        assert reply.generation.message.parts[0].text.text == REPLY

    async def stream(self, text: str) -> tuple[float, str]:
        """Seconds to the first delta, and the text of all."""
        start, first, pieces = time.perf_counter(), 0.0, []
        async for event in self._stub.StreamGenerate(
            chat_service_pb2.StreamGenerateRequest(request=_request(text)), timeout=120
        ):
            if event.HasField("text_delta"):
                first = first or time.perf_counter() - start
                pieces.append(event.text_delta.text)
        return first, "".join(pieces)


def _request(text: str) -> chat_service_pb2.GenerationRequest:
    messages = [*HISTORY, {"role": "user", "content": text}]
    return chat_service_pb2.GenerationRequest(
        handle=f"openai/{MODEL}",
        messages=[
            chat_pb2.ChatMessage(
                role=ROLES[one["role"]],
                parts=[chat_pb2.ChatPart(text=chat_pb2.TextPart(text=one["content"]))],
            )
            for one in messages
        ],
    )


class Http:
    """An OpenAI-compatible endpoint over raw HTTP; connections are kept and lent out."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._free: list[Connection] = []

    @asynccontextmanager
    async def lent(self) -> AsyncIterator[Connection]:
        """A connection that nobody else uses meanwhile."""
        connection = self._free.pop() if self._free else await Connection("127.0.0.1", self._port).__aenter__()
        yield connection
        self._free.append(connection)

    async def whole(self) -> None:
        """A blocking call of 21 messages."""
        async with self.lent() as connection:
            answer = await connection.request("POST", "/v1/chat/completions", {"model": MODEL, "messages": MESSAGES})
        assert answer.status == 200, answer.body

    async def first(self, text: str = "Hello.") -> float:
        """Seconds to the first token."""
        start = time.perf_counter()
        async with self.lent() as connection:
            body = {"model": MODEL, "messages": [*HISTORY, {"role": "user", "content": text}], "stream": True}
            answer = await connection.request(
                "POST", "/v1/chat/completions", body, marker=b'"content":"H' if text == "Hello." else b'"content":"w'
            )
        assert answer.marked_at is not None, answer.body
        return answer.marked_at - start

    async def close(self) -> None:
        """Close the connections."""
        for connection in self._free:
            await connection.__aexit__(None, None, None)


async def at_rate(call: Call, rate: int, seconds: float) -> list[float]:
    """Seconds of calls begun at a fixed rate, whether or not earlier ones have ended; measured from their due time."""
    begin, taken, tasks = time.perf_counter() + 0.1, [], []

    async def one(due: float) -> None:
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        await call()
        taken.append(time.perf_counter() - due)

    for number in range(int(rate * seconds)):
        tasks.append(asyncio.create_task(one(begin + number / rate)))
    try:
        async with asyncio.timeout(seconds + 60):
            await asyncio.gather(*tasks)
    except TimeoutError:
        for task in tasks:
            task.cancel()
    return taken


async def closed_loop(call: Call, clients: int, seconds: float) -> float:
    """Calls per second of that many clients."""
    done, begin = 0, time.perf_counter()

    async def client() -> None:
        nonlocal done
        while time.perf_counter() - begin < seconds:
            await call()
            done += 1

    await asyncio.gather(*(client() for _ in range(clients)))
    return done / (time.perf_counter() - begin)


def spread(report: Report, name: str, taken: Sequence[float], asked: int, floor: Sequence[float] = ()) -> None:
    """Median and 99th percentile in ms, and over those of `floor`; and how many of `asked` were not answered."""
    for label, share in (("p50", 0.5), ("p99", 0.99)):
        value = _quantile(taken, share)
        report.add(f"{name}, {label} ms", 1e3 * value)
        if floor:
            report.add(f"{name} over raw, {label} ms", 1e3 * (value - _quantile(floor, share)))
    if len(taken) < asked:
        report.add(f"{name}, not answered", asked - len(taken))


def _quantile(values: Sequence[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


async def calls(report: Report, gateway: Gateway, raw: Http, count: int) -> tuple[float, list[float]]:
    """Blocking calls one at a time and at a fixed rate; the floor of both."""
    floor = report.spread("raw HTTP call (the floor)", await timed(count, raw.whole))
    ours = report.spread("llm gateway, call", await timed(count, gateway.whole))
    report.add("llm gateway over raw, p50 ms", ours - floor)
    rate_floor = await at_rate(raw.whole, RATE, SECONDS)
    spread(report, f"raw at {RATE}/s", rate_floor, len(rate_floor))
    taken = await at_rate(gateway.whole, RATE, SECONDS)
    spread(report, f"llm gateway at {RATE}/s", taken, int(RATE * SECONDS), rate_floor)
    report.add("llm gateway, calls/s of 32 clients", await closed_loop(gateway.whole, 32, SECONDS / 2))
    return floor, rate_floor


async def steady_streams(gateway: Gateway) -> list[float]:
    """Seconds to the first token of 64 clients that take three streams each; they begin over the length of a stream."""
    firsts: list[float] = []

    async def client(number: int) -> None:
        await asyncio.sleep(number / 64)
        for _ in range(3):
            first, text = await gateway.stream("stream a hundred")
            assert text == TOKENS
            firsts.append(first)

    await asyncio.gather(*(client(number) for number in range(64)))
    return firsts


async def streams(report: Report, gateway: Gateway, raw: Http, process: psutil.Process, count: int) -> None:
    """First tokens, 64 streams, and 1,000 open at once."""
    floor = [await raw.first() for _ in range(count)]
    ours = [(await gateway.stream("Hello."))[0] for _ in range(count)]
    report.add("first token raw, p50 ms", 1e3 * statistics.median(floor))
    report.add("first token held back by, p50 ms", 1e3 * (statistics.median(ours) - statistics.median(floor)))
    report.add("first token held back by, p95 ms", 1e3 * (_quantile(ours, 0.95) - _quantile(floor, 0.95)))
    raw_firsts = await asyncio.gather(*(raw.first("stream a hundred") for _ in range(64)))
    report.add("64 streams of 100 tokens at once, raw, first token longest ms", 1e3 * max(raw_firsts))
    for name in ("new connections", "kept connections"):
        many = await asyncio.gather(*(gateway.stream("stream a hundred") for _ in range(64)))
        assert all(text == TOKENS for _, text in many)
        firsts = [first for first, _ in many]
        report.add(f"64 streams at once, {name}, first token p50 ms", 1e3 * statistics.median(firsts))
        report.add(f"64 streams at once, {name}, first token longest ms", 1e3 * max(firsts))

    firsts = await steady_streams(gateway)
    report.add("64 streams at a time, begun one after the other, first token p50 ms", 1e3 * statistics.median(firsts))
    report.add("64 streams at a time, begun one after the other, first token p99 ms", 1e3 * _quantile(firsts, 0.99))

    idle, peak = process.memory_info().rss, 0

    async def one(number: int) -> bool:
        await asyncio.sleep(number / OPENED_PER_SECOND)
        return (await gateway.stream("stream slowly"))[1] == TOKENS

    tasks = [asyncio.create_task(one(number)) for number in range(OPEN_STREAMS)]
    while not all(task.done() for task in tasks):
        peak = max(peak, process.memory_info().rss)
        await asyncio.sleep(0.1)
    whole = sum(task.result() for task in tasks)
    report.add("llm gateway idle, MB", idle / 1e6)
    report.add(f"{OPEN_STREAMS} open streams, MB", peak / 1e6)
    report.add(f"{OPEN_STREAMS} open streams, with a lost delta", OPEN_STREAMS - whole)


@contextmanager
def litellm(program: str, fake_port: int) -> Any:
    """A LiteLLM proxy before the same fake; its port."""
    with own_port() as port, tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "config.yaml"
        config.write_text(
            f"model_list:\n  - model_name: {MODEL}\n    litellm_params:\n      model: openai/{MODEL}\n"
            f"      api_base: http://127.0.0.1:{fake_port}/v1\n      api_key: sk-bench\n"
        )
        command = [program, "--config", str(config), "--port", str(port), "--host", "127.0.0.1"]
        quiet = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_LOG": "ERROR", "NO_PROXY": "127.0.0.1"}
        # Without a key, which costs it less than checking one.
        quiet |= {"LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true"}
        process = subprocess.Popen(
            command, cwd=folder, env=os.environ | quiet, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            wait_until(lambda: any(one.laddr.port == port for one in psutil.net_connections("tcp") if one.laddr), 90)
            yield port
        finally:
            process.terminate()
            process.wait(20)


async def peer(report: Report, program: str, fake_port: int, floor: float, rate_floor: list[float], count: int) -> None:
    """The same calls through LiteLLM."""
    with litellm(program, fake_port) as port:
        http = Http(port)
        theirs = report.spread("LiteLLM proxy, call", await timed(count, http.whole))
        report.add("LiteLLM proxy over raw, p50 ms", theirs - floor)
        report.add("LiteLLM proxy, calls/s of 32 clients", await closed_loop(http.whole, 32, SECONDS / 2))
        taken = await at_rate(http.whole, RATE, SECONDS)
        spread(report, f"LiteLLM proxy at {RATE}/s", taken, int(RATE * SECONDS), rate_floor)
        await http.close()


async def measure(stack: Stack, fake_port: int, report: Report, count: int, program: str) -> None:
    """All of it."""
    home = Home(stack.home)
    signer = context_signer(home)
    caller = signer.signed(CallContext(uuid4(), UUID(int=2), "run", ("llm_gateway",)))
    raw = Http(fake_port)
    async with raw.lent() as connection:
        assert (await connection.request("POST", "/_script", SCRIPT)).status == 200
    services = stack.supervisor.children(recursive=True)
    process = next(one for one in services if "services.llm_gateway" in one.cmdline())
    async with make_channel(f"unix://{home.socket('llm_gateway')}") as channel:
        with use_context(caller):
            gateway = Gateway(ChatServiceStub(channel))
            floor, rate_floor = await calls(report, gateway, raw, count)
            await streams(report, gateway, raw, process, count)
            if program:
                await peer(report, program, fake_port, floor, rate_floor, count)
    await raw.close()


def main(arguments: Sequence[str]) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="make bench ARGS=llm", description=__doc__)
    parser.add_argument("--count", type=int, default=300, help="calls one at a time (default: 300)")
    parser.add_argument("--peer", default="", help="the `litellm` program, to measure its proxy beside ours")
    options = parser.parse_args(arguments)
    report = Report()
    with loci_with_provider() as (stack, port):
        asyncio.run(measure(stack, port, report, options.count, options.peer))
