"""`make bench ARGS="search ..."`: archives of many passages: how soon they are searched, how much is found, and stored.

The memory service runs in a process of its own, on an embedded Postgres that keeps its promises (fsync); the load asks
it over gRPC, and plays the embedding model, whose answers are made before. The passages (bench/corpus.py) go straight
into the tables; the index of their vectors is built by the service's own job.
"""

import argparse
import asyncio
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import grpc
import orjson

from bench.common import Report
from bench.corpus import Corpus, Matrix, Nearest
from bench.passage_rows import Archive, copy_passages
from loci.llm.v1 import model_service_pb2 as llm_pb
from loci.llm.v1.model_service_pb2_grpc import ModelServiceServicer, add_ModelServiceServicer_to_server
from loci.memory.v1 import passage_pb2
from loci.memory.v1 import passage_service_pb2 as passage_pb
from loci.memory.v1.passage_service_pb2_grpc import PassageServiceStub
from services.common.channel import make_channel
from services.common.context import CallContext, Signer, Verifier, use_context
from services.common.keys import load_private_key, new_private_key, public_keys_of
from services.common.migrate import migrate
from services.common.server import make_server
from tests.e2e.stack import ROOT
from tests.postgres import Postgres

EMBEDDING = "bench/made"
MODES = {
    "vector": passage_pb2.SEARCH_MODE_VECTOR,
    "text": passage_pb2.SEARCH_MODE_TEXT,
    "hybrid": passage_pb2.SEARCH_MODE_HYBRID,
}
NEAREST = 10
WARM_UP = 20
MOST_IN_A_BATCH = 1_000
INDEX_SECONDS = 3_600.0


class Embedder(ModelServiceServicer):
    """Knows the vectors of all texts that it will be asked for."""

    def __init__(self) -> None:
        self._known: dict[str, llm_pb.Vector] = {}

    def learn(self, texts: Sequence[str], vectors: Matrix) -> None:
        """Adds texts with their vectors."""
        for text, vector in zip(texts, vectors, strict=True):
            self._known[text] = llm_pb.Vector(values=vector.tolist())

    async def Embed(self, request: llm_pb.EmbedRequest, context: Any) -> llm_pb.EmbedResponse:
        """Answers with the vectors that were learned."""
        vectors = [self._known[text] for text in request.texts]
        return llm_pb.EmbedResponse(vectors=vectors, dimensions=len(vectors[0].values))


class Load:
    """The measurements of one size, over one service."""

    def __init__(self, passages: Any, embedder: Embedder, report: Report, options: argparse.Namespace) -> None:
        self._passages, self._embedder, self._report, self._options = passages, embedder, report, options
        self._corpus = Corpus(options.dimensions)
        self._batches = 0

    async def insert(self, agent_id: str, name: str) -> None:
        """Measures batches one after the other, and four at once."""
        batches = [self._next_batch(agent_id) for _ in range(2 * self._options.batches)]
        alone, beside = batches[: self._options.batches], batches[self._options.batches :]
        begin = time.perf_counter()
        for batch in alone:
            await self._passages.CreatePassages(batch, timeout=120)
        self._rate(f"insert {name}, passages/s", begin)
        lanes, begin = asyncio.Semaphore(4), time.perf_counter()

        async def send(batch: passage_pb.CreatePassagesRequest) -> None:
            async with lanes:
                await self._passages.CreatePassages(batch, timeout=120)

        await asyncio.gather(*map(send, beside))
        self._rate(f"insert {name}, four at once, passages/s", begin)

    def _rate(self, name: str, begin: float) -> None:
        self._report.add(name, self._options.batches * MOST_IN_A_BATCH / (time.perf_counter() - begin))

    def _next_batch(self, agent_id: str) -> passage_pb.CreatePassagesRequest:
        texts, vectors = self._corpus.further(MOST_IN_A_BATCH, self._batches)
        self._batches += 1
        self._embedder.learn(texts, vectors)
        drafts = [passage_pb.PassageDraft(text=text) for text in texts]
        return passage_pb.CreatePassagesRequest(agent_id=agent_id, passages=drafts, embedding=EMBEDDING)

    async def first(self, agent_id: str) -> None:
        """Makes the agent's archive with a first passage."""
        texts, vectors = self._corpus.further(1, -1)
        self._embedder.learn(texts, vectors)
        drafts = [passage_pb.PassageDraft(text=texts[0])]
        await self._passages.CreatePassages(
            passage_pb.CreatePassagesRequest(agent_id=agent_id, passages=drafts, embedding=EMBEDDING)
        )

    async def search(self, agent_id: str, archive: Archive, url: str, passages: int) -> float:
        """Fills the archive, waits for the index, asks; returns the hybrid p95 in seconds."""
        texts, vectors = self._corpus.questions(self._options.questions)
        self._embedder.learn(texts, vectors)
        nearest = Nearest(vectors, NEAREST)
        begin = time.perf_counter()
        # Apart from this loop, which has to answer pings.
        copying = copy_passages(url, archive, self._corpus, passages, nearest)
        await asyncio.to_thread(asyncio.run, copying)
        self._report.add("loaded in, s", time.perf_counter() - begin)
        await self._ask(agent_id, "hybrid", texts[:1])
        self._report.add("indexed in, s", await wait_for_jobs(url))
        hybrid = 0.0
        for mode in MODES:
            answers = await self._ask(agent_id, mode, texts)
            self._report.spread(f"{mode} search", [seconds for seconds, _ in answers])
            hybrid = sorted(seconds for seconds, _ in answers)[int(0.95 * len(answers))]
            if mode == "vector":
                pairs = zip(answers, nearest.numbers(), strict=True)
                hits = sum(len(found & expected) for (_, found), expected in pairs)
                self._report.add(f"recall@{NEAREST} of the vectors", hits / NEAREST / len(answers))
        return hybrid

    async def _ask(self, agent_id: str, mode: str, texts: Sequence[str]) -> list[tuple[float, set[int]]]:
        """Returns for each question its seconds and the numbers of the passages found."""
        answers = []
        for text in [*texts[:WARM_UP], *texts]:
            request = passage_pb.SearchPassagesRequest(agent_id=agent_id, query=text, top_k=NEAREST, mode=MODES[mode])
            begin = time.perf_counter()
            response = await self._passages.SearchPassages(request, timeout=120)
            taken = time.perf_counter() - begin
            answers.append((taken, {UUID(hit.passage.id.removeprefix("passage-")).int for hit in response.hits}))
        return answers[len(texts[:WARM_UP]) :]


async def wait_for_jobs(url: str) -> float:
    """Seconds until no job is left; a replica knows of a new index a few seconds later."""
    begin = time.perf_counter()
    connection = await asyncpg.connect(url)
    while await connection.fetchval("SELECT count(*) FROM memory.jobs"):
        if time.perf_counter() - begin > INDEX_SECONDS:
            raise TimeoutError("the jobs do not end")
        await asyncio.sleep(0.2)
    taken = time.perf_counter() - begin
    await connection.close()
    await asyncio.sleep(6)
    return taken


@asynccontextmanager
async def service(url: str, folder: Path, embedder: Embedder) -> AsyncIterator[Any]:
    """A memory service in a process of its own; the stub for passages, within the context of a caller."""
    key = new_private_key()
    keys = public_keys_of(key)
    signer = Signer(load_private_key(key), next(iter(orjson.loads(keys))))
    models = make_server(
        f"unix://{folder}/models.sock",
        servicers=[(add_ModelServiceServicer_to_server, embedder)],
        service_names=["loci.llm.v1.ModelService"],
        audience="llm_gateway",
        verifier=Verifier({next(iter(orjson.loads(keys))): load_private_key(key).public_key()}),
    )
    await models.start()
    environment = {
        "PATH": os.environ["PATH"],
        "LOCI_LISTEN": f"unix://{folder}/memory.sock",
        "LOCI_DATABASE_URL": url,
        "LOCI_LLM_GATEWAY_ADDR": f"unix://{folder}/models.sock",
        "LOCI_CONTEXT_PUBLIC_KEYS": keys,
        "LOCI_CONTEXT_SIGNING_KEY": key,
    }
    process = await asyncio.create_subprocess_exec(sys.executable, "-m", "services.memory", env=environment, cwd=ROOT)
    try:
        async with make_channel(f"unix://{folder}/memory.sock") as channel:
            await asyncio.wait_for(_ready(channel), 30)
            caller = CallContext(uuid4(), UUID(int=2), "user", ("memory", "llm_gateway"))
            with use_context(caller, signer=signer):  # renewed: a large index takes longer than a context lasts
                yield PassageServiceStub(channel)
    finally:
        process.terminate()
        await process.wait()
        await models.stop(0)


async def _ready(channel: grpc.aio.Channel) -> None:
    while (state := channel.get_state(try_to_connect=True)) is not grpc.ChannelConnectivity.READY:
        await channel.wait_for_state_change(state)


async def measure(postgres: Postgres, report: Report, options: argparse.Namespace, passages: int) -> float:
    """Measures one size on a database of its own; returns the hybrid p95 in seconds."""
    name = postgres.create_database()
    url, superuser = postgres.service_url("memory", name), postgres.superuser_url(name)
    await migrate(url, "services.memory")
    embedder = Embedder()  # type: ignore[abstract] # the rest of that service is not called
    with tempfile.TemporaryDirectory(prefix="loci-bench-") as folder:
        async with service(url, Path(folder), embedder) as stub:
            load = Load(stub, embedder, report, options)
            if options.batches:
                await load.insert(f"agent-{uuid4()}", "into empty tables")
            agent_id = f"agent-{uuid4()}"
            await load.first(agent_id)
            p95 = await load.search(agent_id, await Archive.of(url, agent_id), superuser, passages)
            if options.batches:
                await load.insert(agent_id, f"beside {passages:,}")
                report.add("all of them indexed in, s", await wait_for_jobs(url))
    postgres.drop_database(name)
    return p95


async def compare(postgres: Postgres, report: Report, options: argparse.Namespace) -> None:
    """Measures all sizes, and the last over the first."""
    taken = []
    for passages in options.passages:
        print(f"{passages:,} passages of {options.dimensions:,} dimensions", flush=True)
        taken.append(await measure(postgres, report, options, passages))
    if len(taken) > 1:
        report.add("hybrid p95, the last size over the first", taken[-1] / taken[0])


def main(arguments: Sequence[str]) -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(prog="bench search", description=__doc__)
    parser.add_argument("--passages", type=int, nargs="+", default=[100_000], help="sizes, one after the other")
    parser.add_argument("--dimensions", type=int, default=1_536)
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--batches", type=int, default=5, help="of 1,000 passages to insert; 0: none")
    options = parser.parse_args(arguments)
    with Postgres.started(durable=True) as postgres:
        asyncio.run(compare(postgres, Report(), options))
