"""`make bench ARGS=probe`: the time of health checks while an agent with a long life is searched and written.

An agent with 10,000 messages and 100,000 passages; for some seconds its archive and its messages are searched, passages
are stored in batches and one by one, and turns are taken, all at once, while the gateway, agent and memory are asked
whether they are well.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from itertools import count
from typing import Any

import asyncpg
import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from bench.common import Report, loci_with_provider, superuser_url
from bench.corpus import Corpus, Nearest
from bench.history import agent_with
from bench.passage_rows import Archive, copy_passages
from bench.search import wait_for_jobs
from bench.wire import Connection
from cli.home import Home
from services.llm_gateway.vendors.demo.hashing import DIMENSIONS
from tests.e2e.stack import Stack

MESSAGES, PASSAGES, SECONDS = 10_000, 100_000, 20.0
PAUSE = 0.02
BATCH = 200

Act = Callable[[Connection, int], Awaitable[None]]


async def measure(stack: Stack, report: Report) -> None:
    """Fills the agent, then loads it and probes."""
    home = Home(stack.home)
    database = superuser_url(home)
    corpus = Corpus(DIMENSIONS)
    superuser = await asyncpg.connect(database)
    async with Connection("127.0.0.1", stack.port) as loci:
        agent_id = await agent_with(loci, superuser, MESSAGES)
        path = f"/v1/agents/{agent_id}/archival-memory"
        assert (await loci.request("POST", path, {"text": "The first."})).status == 200
        archives = (await loci.request("GET", f"/v1/archives/?agent_id={agent_id}")).json()
    questions, vectors = corpus.questions(100)
    archive = await Archive.of(database, agent_id)
    await copy_passages(database, archive, corpus, PASSAGES, Nearest(vectors, 1))
    await superuser.close()
    async with Connection("127.0.0.1", stack.port) as loci:
        await loci.request("GET", f"{path}/search?query={questions[0].split()[0]}")  # asks for indexes
    report.add("indexed in, s", await wait_for_jobs(database))
    load = _load(agent_id, archives[0]["id"], questions, corpus)
    ends = time.monotonic() + SECONDS
    done = dict.fromkeys(load, 0)

    async def keep(name: str, act: Act) -> None:
        async with Connection("127.0.0.1", stack.port) as loci:
            for number in count():
                if time.monotonic() > ends:
                    return
                await act(loci, number)
                done[name] += 1

    probes = _probes(stack, home)
    taken: dict[str, list[float]] = {name: [] for name in probes}

    async def watch(name: str, probe: Callable[[], Awaitable[None]]) -> None:
        while time.monotonic() < ends:
            begin = time.perf_counter()
            await probe()
            taken[name].append(time.perf_counter() - begin)
            await asyncio.sleep(PAUSE)

    await asyncio.gather(*(keep(*each) for each in load.items()), *(watch(*each) for each in probes.items()))
    for name, number in done.items():
        report.add(f"{name}, per second", number / SECONDS)
    for name, seconds in taken.items():
        report.spread(f"health of {name}", seconds)
        report.add(f"health of {name}, longest ms", 1e3 * max(seconds))


def _load(agent_id: str, archive_id: str, questions: Sequence[str], corpus: Corpus) -> dict[str, Act]:
    path = f"/v1/agents/{agent_id}"

    async def ask(loci: Connection, method: str, target: str, body: object = None) -> None:
        answer = await loci.request(method, target, body)
        assert answer.status == 200, answer.body

    def question(number: int) -> str:
        return questions[number % len(questions)]

    async def search(loci: Connection, number: int) -> None:
        await ask(loci, "GET", f"{path}/archival-memory/search?query={question(number).replace(' ', '+')}")

    async def recall(loci: Connection, number: int) -> None:
        body = {"query": f"something said number {number % MESSAGES}", "agent_id": agent_id}
        await ask(loci, "POST", "/v1/messages/search", body)

    async def batch(loci: Connection, number: int) -> None:
        texts, _ = corpus.further(BATCH, number)
        await ask(loci, "POST", f"/v1/archives/{archive_id}/passages/batch", {"passages": [{"text": t} for t in texts]})

    async def passage(loci: Connection, number: int) -> None:
        await ask(loci, "POST", f"{path}/archival-memory", {"text": f"{number} " + "lorem ipsum dolor " * 200})

    async def turn(loci: Connection, number: int) -> None:
        await ask(loci, "POST", f"{path}/messages", {"messages": [{"role": "user", "content": f"Hello {number}."}]})

    return {
        "archive searches": search,
        "message searches": recall,
        f"batches of {BATCH} passages": batch,
        "passages": passage,
        "turns": turn,
    }


def _probes(stack: Stack, home: Home) -> dict[str, Callable[[], Awaitable[None]]]:
    def of_service(name: str) -> Callable[[], Awaitable[None]]:
        stub: Any = health_pb2_grpc.HealthStub(grpc.aio.insecure_channel(f"unix://{home.socket(name)}"))

        async def probe() -> None:
            answer = await stub.Check(health_pb2.HealthCheckRequest())
            assert answer.status == health_pb2.HealthCheckResponse.SERVING

        return probe

    async def gateway() -> None:
        async with Connection("127.0.0.1", stack.port) as loci:
            assert (await loci.request("GET", "/v1/health/")).status == 200

    return {"gateway": gateway, "agent": of_service("agent"), "memory": of_service("memory")}


def main(arguments: Sequence[str]) -> None:
    """Prints the table."""
    report = Report()
    with loci_with_provider() as (stack, _):
        asyncio.run(measure(stack, report))
