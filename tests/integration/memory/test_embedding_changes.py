"""Changes of an archive's embedding model: their states, and embedders that fail."""

from __future__ import annotations

from uuid import uuid4

from loci.memory.v1 import passage_service_pb2 as passage_pb
from services.common.errors import Aborted, FailedPrecondition, InvalidArgument, NotFound
from tests.integration.memory.harness import EMBEDDING, Memory, fails, unavailable
from tests.integration.memory.moving import (
    COMPLETED,
    FINISHED,
    NARROW,
    ROLLED_BACK,
    RUNNING,
    SIZES,
    WIDE,
    WORDS,
    Moving,
    archive_with,
    stop_after,
    summary,
    take_over,
)


async def test_a_change_runs_switches_and_is_finished(moving: Moving) -> None:
    assert summary(await moving.change(WIDE)) == (EMBEDDING, WIDE, RUNNING, 0, 6)
    assert (await moving.change(WIDE)).created_at == (await moving.progress()).created_at, "the same is there once"
    with fails(Aborted, "EMBEDDING_CHANGE_RUNNING"):
        await moving.change(NARROW)
    with fails(Aborted, "EMBEDDING_CHANGE_RUNNING"):
        await moving.finish()
    assert await moving.embedding() == EMBEDDING
    await moving.work()
    change = await moving.progress()
    assert summary(change) == (EMBEDDING, WIDE, COMPLETED, 6, 6)
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
    assert summary(await moving.progress()) == (EMBEDDING, "", COMPLETED, 0, 6)
    assert await moving.embedding() is None
    assert [hit.HasField("vector_score") for hit in await moving.found("kitten", 1)] == [False]
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
    assert summary(await empty.progress()) == (EMBEDDING, WIDE, COMPLETED, 0, 0)
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
    async with stop_after(moving, writes=1):
        await moving.work()
    assert (await moving.progress()).embedded == 6
    assert summary(await moving.roll_back())[:3] == (EMBEDDING, WIDE, ROLLED_BACK)
    assert (await moving.roll_back()).state == ROLLED_BACK
    await moving.work(await take_over(moving))
    assert (await moving.embedding(), await moving.vectors()) == (EMBEDDING, {EMBEDDING: 6})

    await moving.change(WIDE)
    await moving.work()
    await memory.store(moving.agent_id, "A puppy.")
    memory.models.failures[EMBEDDING] = unavailable()
    change = await moving.roll_back()
    assert (*summary(change), change.rolling_back) == (WIDE, EMBEDDING, RUNNING, 6, 7, True)
    await moving.work()
    change = await moving.progress()
    assert (change.state, "provider is down" in change.last_error) == (RUNNING, True)
    assert await moving.embedding() == WIDE, "searches stay where all vectors are"
    assert [hit.HasField("vector_score") for hit in await moving.found("hound")][:2] == [True, True]
    given_up = await moving.change(WIDE)
    assert (*summary(given_up), given_up.rolling_back) == (EMBEDDING, WIDE, COMPLETED, 7, 7, False)
    assert (await moving.roll_back()).rolling_back
    memory.models.failures.clear()
    await moving.work()
    assert summary(await moving.progress())[:3] == (EMBEDDING, WIDE, ROLLED_BACK)
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
    async with stop_after(many, writes=1):
        await many.work()
    worker = await take_over(many)
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
    assert summary(await many.progress()) == (EMBEDDING, WIDE, COMPLETED, 300, 300)
    assert memory.models.texts[0] == 32, "fewer at a time after failures"
    assert (await many.progress()).last_error == ""


async def test_texts_without_a_vector_do_not_stop_the_move(moving: Moving) -> None:
    """Zero vectors, and texts that the provider refuses; but not all of them."""
    await moving.memory.store(moving.agent_id, "Nothing at all.", "A poisoned cat.", "More of nothing.")
    moving.memory.models.refused = "poison"
    await moving.change(NARROW)
    await moving.work()
    assert summary(await moving.progress()) == (EMBEDDING, NARROW, COMPLETED, 9, 9)
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
