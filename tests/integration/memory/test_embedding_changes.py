"""Changes of an archive's embedding model: under load, after crashes, taken back, and with embedders that fail."""

from __future__ import annotations

import asyncio
import random
from array import array
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any
from uuid import UUID, uuid4

import grpc
import pytest

from loci.memory.v1 import archive_service_pb2 as pb
from loci.memory.v1 import passage_service_pb2 as passage_pb
from loci.memory.v1.passage_pb2 import SEARCH_MODE_VECTOR
from services.common import vector_indexes
from services.common.errors import Aborted, FailedPrecondition, InvalidArgument, NotFound, Unavailable, from_rpc
from services.common.vectors import encode
from services.memory.archival.embedding_ports import Made
from services.memory.archival.embedding_rules import EmbeddingChange, Reached
from services.memory.archival.passages import unit_vector
from services.memory.jobs.queue import Worker
from tests.integration.memory.harness import EMBEDDING, Memory, concept_vector, fails, sized, unavailable

WIDE, NARROW = "test/wide", "test/narrow"
SIZES = {WIDE: 8, NARROW: 5}
WORDS = ("cat", "dog", "car", "code", "tea")

RUNNING, COMPLETED, ROLLED_BACK, FINISHED = (
    pb.EMBEDDING_CHANGE_STATE_RUNNING,
    pb.EMBEDDING_CHANGE_STATE_COMPLETED,
    pb.EMBEDDING_CHANGE_STATE_ROLLED_BACK,
    pb.EMBEDDING_CHANGE_STATE_FINISHED,
)


def stored(text: str, size: int) -> bytes:
    """A text's vector of so many dimensions, by way of 32-bit floats."""
    return encode(unit_vector(array("f", sized(concept_vector(text), size))) or [])


class Moving:
    """An agent whose archive is changed."""

    def __init__(self, memory: Memory, agent_id: str, archive_id: str) -> None:
        self.memory = memory
        self.agent_id = agent_id
        self.archive_id = archive_id
        self.key = (memory.caller.organization_id, UUID(archive_id.removeprefix("archive-")))

    async def change(self, embedding: str) -> Any:
        request = pb.ChangeEmbeddingRequest(archive_id=self.archive_id, embedding=embedding)
        return (await self.memory.archives.ChangeEmbedding(request)).change

    async def progress(self) -> Any:
        request = pb.GetEmbeddingChangeRequest(archive_id=self.archive_id)
        return (await self.memory.archives.GetEmbeddingChange(request)).change

    async def roll_back(self) -> Any:
        request = pb.RollBackEmbeddingChangeRequest(archive_id=self.archive_id)
        return (await self.memory.archives.RollBackEmbeddingChange(request)).change

    async def finish(self) -> Any:
        request = pb.FinishEmbeddingChangeRequest(archive_id=self.archive_id)
        return (await self.memory.archives.FinishEmbeddingChange(request)).change

    async def work(self, worker: Worker | None = None) -> None:
        """Until there is nothing to do, without waiting for pauses."""
        worker = worker or self.memory.worker()
        await self.memory.pool.execute("UPDATE memory.jobs SET not_before = now()")
        while await worker.run_one():
            pass

    async def vectors(self) -> dict[str, int]:
        """How many passages have a vector of each model."""
        query = """
            SELECT e.handle, count(*) FROM memory.passage_vectors v JOIN memory.embedding_models e ON e.id = v.model_id
            WHERE v.organization_id = $1 AND v.archive_id = $2 GROUP BY e.handle
        """
        return {row[0]: row[1] for row in await self.memory.pool.fetch(query, *self.key)}

    async def embedding(self) -> Any:
        """The handle that is used now, told by the model that searches use."""
        query = """
            SELECT a.embedding, e.handle FROM memory.archives a LEFT JOIN memory.embedding_models e ON e.id = a.model_id
            WHERE a.organization_id = $1 AND a.id = $2
        """
        wanted, used = await self.memory.pool.fetchrow(query, *self.key)
        assert wanted == used
        return used

    async def wrong(self, handle: str) -> list[str]:
        """Texts whose vector of that model is missing, or not theirs."""
        query = """
            SELECT p.text, v.embedding FROM memory.passages p
            LEFT JOIN memory.embedding_models e ON (e.handle, e.dimensions) = ($3, $4)
            LEFT JOIN memory.passage_vectors v ON v.organization_id = p.organization_id
                AND v.archive_id = p.archive_id AND v.passage_id = p.id AND v.model_id = e.id
            WHERE p.organization_id = $1 AND p.archive_id = $2
        """
        size = SIZES.get(handle, 6)
        rows = await self.memory.pool.fetch(query, *self.key, handle, size)
        return [text for text, vector in rows if vector != stored(text, size)]

    async def found(self, query: str) -> list[Any]:
        return await self.memory.search(self.agent_id, query, top_k=3)


@pytest.fixture
async def moving(memory: Memory) -> Moving:
    """Six passages with vectors of EMBEDDING."""
    memory.models.sizes = dict(SIZES)
    await memory.pool.execute("DELETE FROM memory.jobs")
    return await archive_with(memory, *(f"A {word} of mine." for word in WORDS), "A kitten sleeps.")


async def archive_with(memory: Memory, *texts: str, embedding: str = EMBEDDING) -> Moving:
    agent_id = await memory.agent_with()
    stored = await memory.store(agent_id, *texts, embedding=embedding)
    return Moving(memory, agent_id, stored[0].archive_id)


def told(change: Any) -> tuple[str, str, int, int, int]:
    return change.from_embedding, change.to_embedding, change.state, change.embedded, change.total


async def test_a_change_runs_switches_and_is_finished(moving: Moving) -> None:
    assert told(await moving.change(WIDE)) == (EMBEDDING, WIDE, RUNNING, 0, 6)
    assert (await moving.change(WIDE)).created_at == (await moving.progress()).created_at, "the same is there once"
    with fails(Aborted, "EMBEDDING_CHANGE_RUNNING"):
        await moving.change(NARROW)
    with fails(Aborted, "EMBEDDING_CHANGE_RUNNING"):
        await moving.finish()
    assert await moving.embedding() == EMBEDDING
    await moving.work()
    change = await moving.progress()
    assert told(change) == (EMBEDDING, WIDE, COMPLETED, 6, 6)
    assert (change.HasField("completed_at"), change.last_error, change.rolling_back) == (True, "", False)
    assert await moving.embedding() == WIDE
    assert await moving.vectors() == {EMBEDDING: 6, WIDE: 6}
    assert await moving.wrong(WIDE) == []
    moving.memory.models.failures[EMBEDDING] = unavailable()
    hits = await moving.found("feline")
    assert {hits[0].passage.text, hits[1].passage.text} == {"A cat of mine.", "A kitten sleeps."}
    assert hits[0].passage.embedding == WIDE
    await moving.memory.store(moving.agent_id, "A puppy.")
    assert (await moving.change(WIDE)).state == COMPLETED, "it is there already"
    assert (await moving.finish()).state == FINISHED
    await moving.work()
    assert await moving.vectors() == {WIDE: 7}
    assert (await moving.finish()).state == FINISHED
    with fails(FailedPrecondition, "EMBEDDING_CHANGE_FINISHED"):
        await moving.roll_back()


async def test_from_and_to_no_vectors_and_to_an_empty_archive(moving: Moving, memory: Memory) -> None:
    await moving.change("")
    await moving.work()
    assert told(await moving.progress()) == (EMBEDDING, "", COMPLETED, 0, 6)
    assert await moving.embedding() is None
    assert [hit.HasField("vector_score") for hit in await moving.found("kitten")] == [False]
    await memory.store(moving.agent_id, "A hound.")
    await moving.change(NARROW)
    await moving.work()
    assert await moving.embedding() == NARROW
    assert await moving.vectors() == {EMBEDDING: 6, NARROW: 7}
    [back] = {(await moving.roll_back()).state}
    assert (back, await moving.embedding()) == (ROLLED_BACK, None)
    await moving.work()
    assert await moving.vectors() == {}, "nothing uses any"
    [passage] = await memory.store(agent := await memory.agent_with(), "x")
    await memory.passages.DeletePassage(passage_pb.DeletePassageRequest(agent_id=agent, passage_id=passage.id))
    empty = Moving(memory, agent, passage.archive_id)
    await empty.change(WIDE)
    await empty.work()
    assert told(await empty.progress()) == (EMBEDDING, WIDE, COMPLETED, 0, 0)
    [passage] = await memory.store(agent, "A cat.")
    assert passage.embedding == WIDE
    assert (await empty.roll_back()).rolling_back
    await empty.work()
    assert (await empty.embedding(), await empty.vectors()) == (EMBEDDING, {EMBEDDING: 1})


async def test_what_there_is_nothing_of(moving: Moving) -> None:
    with fails(NotFound, "EMBEDDING_CHANGE_NOT_FOUND"):
        await moving.progress()
    for ask in (moving.roll_back, moving.finish):
        with fails(NotFound, "EMBEDDING_CHANGE_NOT_FOUND"):
            await ask()
    moving.memory.models.failures["test/none"] = NotFound("no such model", reason="MODEL_NOT_FOUND")
    with fails(NotFound, "MODEL_NOT_FOUND"):
        await moving.change("test/none")
    with fails(NotFound, "EMBEDDING_CHANGE_NOT_FOUND"):
        await moving.progress()
    with moving.memory.of(uuid4()), fails(NotFound, "ARCHIVE_NOT_FOUND"):
        await moving.change(WIDE)
    for archive_id, reason in ((f"source-{moving.key[1]}", "FOLDER_NOT_FOUND"), ("agent-1", "INVALID_ID")):
        moving.archive_id = archive_id
        for ask in (moving.progress, moving.roll_back, moving.finish):
            with fails(InvalidArgument if reason == "INVALID_ID" else NotFound, reason):
                await ask()


async def test_a_change_is_rolled_back_in_every_state(moving: Moving) -> None:
    memory = moving.memory
    await moving.change(WIDE)
    async with stopped_after(moving, writes=1):
        await moving.work()
    assert (await moving.progress()).embedded == 6
    assert told(await moving.roll_back())[:3] == (EMBEDDING, WIDE, ROLLED_BACK)
    assert (await moving.roll_back()).state == ROLLED_BACK
    await moving.work(await taken_over(moving))
    assert (await moving.embedding(), await moving.vectors()) == (EMBEDDING, {EMBEDDING: 6})

    await moving.change(WIDE)
    await moving.work()
    await memory.store(moving.agent_id, "A puppy.")
    memory.models.failures[EMBEDDING] = unavailable()
    change = await moving.roll_back()
    assert (*told(change), change.rolling_back) == (WIDE, EMBEDDING, RUNNING, 6, 7, True)
    await moving.work()
    change = await moving.progress()
    assert (change.state, "provider is down" in change.last_error) == (RUNNING, True)
    assert await moving.embedding() == WIDE, "searches stay where all vectors are"
    assert [hit.HasField("vector_score") for hit in await moving.found("hound")][:2] == [True, True]
    given_up = await moving.change(WIDE)
    assert (*told(given_up), given_up.rolling_back) == (EMBEDDING, WIDE, COMPLETED, 7, 7, False)
    assert (await moving.roll_back()).rolling_back
    memory.models.failures.clear()
    await moving.work()
    assert told(await moving.progress())[:3] == (EMBEDDING, WIDE, ROLLED_BACK)
    assert (await moving.embedding(), await moving.vectors()) == (EMBEDDING, {EMBEDDING: 7})

    await moving.change(NARROW)
    await moving.work()
    assert (await moving.roll_back()).state == ROLLED_BACK, "nothing is missing: at once"
    assert await moving.embedding() == EMBEDDING
    await moving.work()
    assert (await moving.vectors(), await moving.wrong(EMBEDDING)) == ({EMBEDDING: 7}, [])


async def test_an_embedder_that_fails_half_way_is_shown_and_asked_again(memory: Memory, moving: Moving) -> None:
    many = await archive_with(memory, *(f"{WORDS[number % 5]} {number}" for number in range(300)))
    memory.models.failures[WIDE] = unavailable()
    change = await many.change(WIDE)
    assert (change.state, change.last_error) == (RUNNING, "the provider is down")
    memory.models.failures.clear()
    async with stopped_after(many, writes=1):
        await many.work()
    worker = await taken_over(many)
    for failure, sentence in ((unavailable(), "the provider is down"), (None, "6 dimensions")):
        if failure is not None:
            memory.models.failures[WIDE] = failure
        else:
            del memory.models.failures[WIDE], memory.models.sizes[WIDE]
        await many.work(worker)
        change = await many.progress()
        assert (change.state, change.embedded, sentence in change.last_error) == (RUNNING, 128, True), change
        assert await many.embedding() == EMBEDDING
    assert await memory.pool.fetchval("SELECT failures FROM memory.jobs") == 2
    memory.models.sizes[WIDE] = SIZES[WIDE]
    memory.models.texts.clear()
    await many.work()
    assert told(await many.progress()) == (EMBEDDING, WIDE, COMPLETED, 300, 300)
    assert memory.models.texts[0] == 32, "fewer at a time after failures"
    assert (await many.progress()).last_error == ""


async def test_texts_without_a_vector_do_not_stop_the_move(moving: Moving) -> None:
    """Zero vectors, and texts that the provider refuses; but not all of them."""
    await moving.memory.store(moving.agent_id, "Nothing at all.", "A poisoned cat.", "More of nothing.")
    moving.memory.models.refused = "poison"
    await moving.change(NARROW)
    await moving.work()
    assert told(await moving.progress()) == (EMBEDDING, NARROW, COMPLETED, 9, 9)
    assert await moving.vectors() == {EMBEDDING: 9, NARROW: 6}
    moving.memory.models.refused = ""
    await moving.change(WIDE)
    moving.memory.models.refused = " "
    await moving.work()
    change = await moving.progress()
    assert (change.state, change.embedded, change.last_error) == (RUNNING, 0, "the provider refuses a text")
    await moving.roll_back()
    await moving.work()
    assert await moving.vectors() == {NARROW: 6}


@pytest.mark.parametrize("writes", [0, 1, 7, 11])
async def test_a_worker_that_dies_is_taken_over_where_it_was(memory: Memory, moving: Moving, writes: int) -> None:
    many = await archive_with(memory, *(f"{WORDS[number % 5]} {number}" for number in range(1_000)))
    await many.change(WIDE)
    memory.models.texts.clear()
    async with stopped_after(many, writes=writes):
        await many.work()
    assert (await many.progress()).embedded == min(1_000, 128 * writes)
    await many.work(await taken_over(many))
    assert told(await many.progress()) == (EMBEDDING, WIDE, COMPLETED, 1_000, 1_000)
    assert await many.wrong(WIDE) == []
    assert sum(memory.models.texts) <= 1_128, "what was stored is not made again"


async def test_a_whole_move_while_the_archive_is_used(memory: Memory, moving: Moving) -> None:
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
        hits = await many.found(f"{word} number {dice.randrange(2_000)}")
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

    async def fail() -> None:
        while not over.is_set():
            for handle in (EMBEDDING, WIDE):
                memory.models.failures[handle] = unavailable()
                await asyncio.sleep(0.02)
                memory.models.failures.clear()
                await asyncio.sleep(0.1)

    async def move() -> None:
        while (await many.progress()).state == RUNNING:
            await many.work()
        over.set()

    users = [("search", search), ("search", search), ("insert", insert), ("update", update), ("delete", delete)]
    async with asyncio.TaskGroup() as tasks:
        for name, use in users:
            tasks.create_task(until_over(name, use))
        tasks.create_task(fail())
        tasks.create_task(move())
    change = await many.progress()
    assert (change.state, change.embedded) == (COMPLETED, change.total)
    assert min(uses.values()) > 5, uses
    assert meant["yes"] > meant["no"], "embedders fail seldom"
    assert await many.wrong(WIDE) == []


async def test_the_other_side_answers_while_an_embedder_is_down(memory: Memory, moving: Moving) -> None:
    many = await archive_with(memory, *(f"{WORDS[number % 5]} {number}" for number in range(150)))

    async def by_meaning(word: str, **options: Any) -> list[bool]:
        hits = await memory.search(many.agent_id, word, top_k=2, **options)
        return [hit.HasField("vector_score") for hit in hits]

    await many.change(WIDE)
    async with stopped_after(many, writes=1):
        await many.work()
    memory.models.failures[EMBEDDING] = unavailable()
    assert await by_meaning("automobile") == [], "too few passages have a new vector"
    with fails(Unavailable):
        await by_meaning("automobile", mode=SEARCH_MODE_VECTOR)
    async with stopped_after(many, writes=1):
        await many.work(await taken_over(many))
    assert await by_meaning("automobile") == [True, True]
    assert await by_meaning("automobile", mode=SEARCH_MODE_VECTOR) == [True, True]
    memory.models.failures[WIDE] = unavailable()
    assert await by_meaning("automobile") == []
    memory.models.failures.clear()
    await many.work(await taken_over(many))
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
    assert told(await many.progress()) == (EMBEDDING, indexed, RUNNING, 150, 150)
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


@asynccontextmanager
async def stopped_after(moving: Moving, *, writes: int) -> AsyncIterator[None]:
    """A process that is killed after so many stored batches; its lease is left."""
    store, left = moving.memory.stores.changes, writes
    write = store.write

    async def counted(
        organization_id: UUID, change: EmbeddingChange, made: Sequence[Made], reached: Reached | None
    ) -> bool:
        nonlocal left
        if left == 0:
            raise asyncio.CancelledError
        left -= 1
        return await write(organization_id, change, made, reached)

    held = store.held

    def killed(organization_id: UUID, change: EmbeddingChange) -> Any:
        raise asyncio.CancelledError

    store.write, store.held = counted, killed  # type: ignore[method-assign]
    with suppress(asyncio.CancelledError):
        yield
    store.write, store.held = write, held  # type: ignore[method-assign]


async def taken_over(moving: Moving) -> Worker:
    """Another worker, once the lease of the first has ended."""
    await moving.memory.pool.execute("UPDATE memory.jobs SET leased_until = now() - interval '1 second'")
    return moving.memory.worker()
