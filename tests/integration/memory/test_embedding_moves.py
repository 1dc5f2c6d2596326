"""Moves to another embedding model: under load, after crashes, at the last moment, and who answers meanwhile."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any
from uuid import UUID, uuid4

import grpc
import pytest

from loci.memory.v1 import passage_service_pb2 as passage_pb
from loci.memory.v1.passage_pb2 import SEARCH_MODE_VECTOR
from services.common import vector_indexes
from services.common.context import use_context
from services.common.errors import LociError, Unavailable, from_rpc
from services.memory.core.ports.embedding_changes import LockedChange
from services.memory.embedding_changes.job import EmbeddingChangeJob
from services.memory.embedding_changes.model import EmbeddingChange, TextVector
from services.memory.jobs.model import Job
from services.memory.passages.embedding import TextEmbedder
from tests.integration.memory.harness import EMBEDDING, Memory, fails, unavailable
from tests.integration.memory.moving import (
    COMPLETED,
    NARROW,
    RUNNING,
    WIDE,
    WORDS,
    Moving,
    archive_with,
    stop_after,
    summary,
    take_over,
)
from tests.polling import until


@pytest.mark.parametrize("writes", [0, 1, 7, 11])
async def test_a_worker_that_dies_is_taken_over_where_it_was(memory: Memory, moving: Moving, writes: int) -> None:
    many = await archive_with(memory, *(f"{WORDS[number % 5]} {number}" for number in range(1_000)))
    await many.change(WIDE)
    memory.models.texts.clear()
    async with stop_after(many, writes=writes):
        await many.work()
    assert (await many.progress()).embedded == min(1_000, 128 * writes)
    await many.work(await take_over(many))
    assert summary(await many.progress()) == (EMBEDDING, WIDE, COMPLETED, 1_000, 1_000)
    assert await many.wrong(WIDE) == []
    assert sum(memory.models.texts) <= 1_128, "what was stored is not made again"


async def test_what_comes_at_the_last_moment(moving: Moving, monkeypatch: pytest.MonkeyPatch) -> None:
    """A text changes after it was embedded, passages come whenever all seems to be done, and a second worker helps."""
    memory, store, rounds = moving.memory, moving.memory.stores.changes, 0
    write, lock = store.write, store.lock

    async def late_write(
        organization_id: UUID, change: EmbeddingChange, created: Sequence[TextVector], *rest: Any
    ) -> bool:
        if not rounds and created:
            draft = passage_pb.PassageDraft(text="A hound, not a cat.")
            request = passage_pb.UpdatePassageRequest(
                agent_id=moving.agent_id, passage_id=f"passage-{created[0].passage_id}", passage=draft
            )
            request.update_mask.paths.append("text")
            with use_context(memory.caller):
                await memory.passages.UpdatePassage(request)
        return await write(organization_id, change, created, *rest)

    @asynccontextmanager
    async def late_held(organization_id: UUID, change: EmbeddingChange) -> AsyncIterator[LockedChange | None]:
        nonlocal rounds
        rounds += 1
        with use_context(memory.caller):
            await memory.store(moving.agent_id, f"A late cat {rounds}.")
        async with lock(organization_id, change) as holding:
            yield holding

    monkeypatch.setattr(store, "write", late_write)
    monkeypatch.setattr(store, "lock", late_held)
    await moving.change(WIDE)
    await moving.work()
    change = await moving.progress()
    assert (change.state, change.embedded, change.total) == (COMPLETED, 6 + rounds, 6 + rounds)
    assert rounds == 4, "the fourth time, the switch does not wait for the last few"
    assert await moving.wrong(WIDE) == []
    monkeypatch.undo()
    await moving.change(NARROW)
    job = Job(id=uuid4(), organization_id=moving.key[0], kind="embedding_change", subject=str(moving.key[1]))
    move = EmbeddingChangeJob(store, TextEmbedder(memory.embedder, memory.stores.passages))
    assert set(await asyncio.gather(move(job), move(job), move(job))) == {None}
    assert (await moving.embedding(), await moving.wrong(NARROW)) == (NARROW, [])


class Seldom(dict[str, LociError]):
    """Failures of models: every seventh call of each."""

    def __init__(self) -> None:
        super().__init__()
        self._asked: Counter[str] = Counter()

    def get(self, handle: str, default: Any = None) -> Any:
        """Is asked at each call."""
        self._asked[handle] += 1
        return unavailable() if self._asked[handle] % 7 == 0 else default


async def test_a_whole_move_while_the_archive_is_used(
    memory: Memory, moving: Moving, monkeypatch: pytest.MonkeyPatch
) -> None:
    """3,000 passages; insertions, changes, deletions and searches go on, and either embedder fails at times."""
    texts = [f"{WORDS[number % 5]} number {number}" for number in range(3_000)]
    many = await archive_with(memory, *texts[:1_000])
    for start in (1_000, 2_000):
        await memory.store(many.agent_id, *texts[start : start + 1_000])
    await many.change(WIDE)
    over, uses, dice = asyncio.Event(), dict.fromkeys(("search", "insert", "update", "delete"), 0), random.Random(7)
    meant = {"yes": 0, "no": 0}

    async def until_over(name: str, use: Any) -> None:
        while not over.is_set():
            await use()
            uses[name] += 1
            await asyncio.sleep(0.002)

    async def search() -> None:
        word = dice.choice(WORDS)
        hits = await many.found(f"{word} number {dice.randrange(2_000)}", 10)
        assert hits, "one or two may have been deleted since they were ranked"
        by_meaning = [hit for hit in hits if hit.HasField("vector_score")]
        # A text may have changed between its ranking and its reading.
        assert all(word in hit.passage.text or "anew" in hit.passage.text for hit in by_meaning)
        meant["yes" if by_meaning else "no"] += 1

    async def insert() -> None:
        with unless_down():
            await memory.store(many.agent_id, f"{dice.choice(WORDS)} new {uses['insert']}")

    async def some_id() -> str:
        query = "SELECT id FROM memory.passages WHERE organization_id = $1 AND archive_id = $2 OFFSET $3 LIMIT 1"
        return f"passage-{await memory.pool.fetchval(query, *many.key, dice.randrange(2_500))}"

    async def update() -> None:
        draft = passage_pb.PassageDraft(text=f"{dice.choice(WORDS)} number {uses['update']} anew")
        request = passage_pb.UpdatePassageRequest(agent_id=many.agent_id, passage_id=await some_id(), passage=draft)
        request.update_mask.paths.append("text")
        with unless_down():
            await memory.passages.UpdatePassage(request)

    async def delete() -> None:
        request = passage_pb.DeletePassageRequest(agent_id=many.agent_id, passage_id=await some_id())
        with unless_down():
            await memory.passages.DeletePassage(request)

    store, batches = memory.stores.changes, itertools.count(1)
    write = store.write

    async def write_between_uses(*given: Any) -> bool:
        """The first batches wait, so that it is used between them however slow that is."""
        batch = next(batches)
        await until(lambda: min(uses.values()) >= min(batch, 6))
        return await write(*given)

    monkeypatch.setattr(store, "write", write_between_uses)
    memory.models.failures = Seldom()

    async def move() -> None:
        while (await many.progress()).state == RUNNING:
            await many.work()
        over.set()

    users = [("search", search), ("search", search), ("insert", insert), ("update", update), ("delete", delete)]
    async with asyncio.TaskGroup() as tasks:
        for name, use in users:
            tasks.create_task(until_over(name, use))
        tasks.create_task(move())
    change = await many.progress()
    assert (change.state, change.embedded) == (COMPLETED, change.total)
    assert min(uses.values()) >= 6, uses
    assert meant["yes"] > meant["no"], "embedders fail seldom"
    assert await many.wrong(WIDE) == []


async def test_the_other_side_answers_while_an_embedder_is_down(memory: Memory, moving: Moving) -> None:
    many = await archive_with(memory, *(f"{WORDS[number % 5]} {number}" for number in range(150)))

    async def by_meaning(word: str, **options: Any) -> list[bool]:
        hits = await memory.search(many.agent_id, word, top_k=2, **options)
        return [hit.HasField("vector_score") for hit in hits]

    await many.change(WIDE)
    async with stop_after(many, writes=1):
        await many.work()
    memory.models.failures[EMBEDDING] = unavailable()
    assert await by_meaning("automobile") == [], "too few passages have a new vector"
    with fails(Unavailable):
        await by_meaning("automobile", mode=SEARCH_MODE_VECTOR)
    async with stop_after(many, writes=1):
        await many.work(await take_over(many))
    assert await by_meaning("automobile") == [True, True]
    assert await by_meaning("automobile", mode=SEARCH_MODE_VECTOR) == [True, True]
    memory.models.failures[WIDE] = unavailable()
    assert await by_meaning("automobile") == []
    memory.models.failures.clear()
    await many.work(await take_over(many))
    assert await many.embedding() == WIDE
    memory.models.failures[WIDE] = unavailable()
    assert await by_meaning("automobile") == [True, True], "by the vectors that were kept"
    await many.finish()
    assert await by_meaning("automobile") == []


async def test_the_switch_waits_for_the_index_of_the_new_vectors(
    memory: Memory, moving: Moving, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vector_indexes, "LEAST_VECTORS", 100)
    memory.models.sizes[indexed := f"test/{uuid4()}"] = 7
    many = await archive_with(memory, *(f"{WORDS[number % 5]} {number}" for number in range(150)))
    await many.change(indexed)
    worker = memory.worker()
    assert await worker.run_one()
    assert summary(await many.progress()) == (EMBEDDING, indexed, RUNNING, 150, 150)
    while not await memory.pool.fetchval("SELECT count(*) = 1 FROM memory.jobs"):
        assert await worker.run_one(), "the index is built"
    assert (await many.progress()).state == RUNNING
    await many.work(worker)
    assert (await many.progress()).state == COMPLETED
    index = "SELECT indexdef FROM pg_indexes WHERE schemaname = 'memory' AND indexdef LIKE '%halfvec(7)%'"
    assert await memory.pool.fetchval(index) is not None
    assert [hit.HasField("vector_score") for hit in await many.found("automobile")] == [True] * 3


@contextmanager
def unless_down() -> Iterator[None]:
    """What writes may fail while an embedder is down, or find that the passage was deleted."""
    try:
        yield
    except grpc.aio.AioRpcError as error:
        if from_rpc(error).reason not in ("LLM_UNAVAILABLE", "PASSAGE_NOT_FOUND"):
            raise
