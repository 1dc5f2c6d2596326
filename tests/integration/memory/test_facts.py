"""Facts that change: the latest is found, the earlier ones by who asks for their time."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import orjson
import pytest
from google.protobuf.field_mask_pb2 import FieldMask

from loci.memory.v1 import passage_pb2
from loci.memory.v1 import passage_service_pb2 as pb
from services.common.errors import InvalidArgument, NotFound
from services.common.timestamps import timestamp
from tests.integration.memory.harness import EMBEDDING, Memory, fails
from tests.page_requests import paged

MODES = [passage_pb2.SEARCH_MODE_TEXT, passage_pb2.SEARCH_MODE_VECTOR, passage_pb2.SEARCH_MODE_HYBRID]
KEY = "ada/home"


def day(month: int, number: int = 1) -> Any:
    """Of 2024."""
    return timestamp(datetime(2024, month, number, tzinfo=UTC))


def home(place: str, month: int, **fields: Any) -> pb.PassageDraft:
    return pb.PassageDraft(text=f"Ada's cat lives in {place}.", created_at=day(month), key=KEY, **fields)


async def tell(memory: Memory, agent: str, *drafts: pb.PassageDraft) -> list[passage_pb2.Passage]:
    """One after the other."""
    told: list[passage_pb2.Passage] = []
    for draft in drafts:
        request = pb.CreatePassagesRequest(agent_id=agent, passages=[draft], embedding=EMBEDDING)
        told += (await memory.passages.CreatePassages(request)).passages
    return told


async def listed(memory: Memory, agent: str, **fields: Any) -> list[passage_pb2.Passage]:
    request = pb.ListPassagesRequest(**paged(agent_id=agent, **fields))
    return list((await memory.passages.ListPassages(request)).passages)


def places(hits: Sequence[Any]) -> list[str]:
    return sorted(hit.passage.text.split()[-1].strip(".") for hit in hits)


@pytest.mark.parametrize("mode", MODES)
async def test_the_latest_of_a_key_is_found_and_the_others_at_their_time(memory: Memory, mode: Any) -> None:
    agent = await memory.agent_with()
    # The second was told of last.
    await tell(memory, agent, home("Paris", 1), home("Rome", 9), home("Oslo", 5))
    await tell(memory, agent, pb.PassageDraft(text="Bob's cat lives in Bern.", created_at=day(2)))

    async def found(**fields: Any) -> list[str]:
        return places(await memory.search(agent, "Where does the cat live?", mode=mode, **fields))

    assert await found() == ["Bern", "Rome"]
    assert await found(history=True) == ["Bern", "Oslo", "Paris", "Rome"]
    assert await found(as_of=day(1, 15)) == ["Paris"]
    assert await found(as_of=day(5, 15)) == ["Bern", "Oslo"]
    assert await found(as_of=day(9)) == ["Bern", "Rome"]
    assert await found(as_of=timestamp(datetime(2023, 1, 1, tzinfo=UTC))) == []


async def test_what_took_the_place_of_what_is_shown(memory: Memory) -> None:
    agent = await memory.agent_with()
    [paris, rome, oslo] = await tell(memory, agent, home("Paris", 1), home("Rome", 9), home("Oslo", 5))
    assert (rome.key, rome.HasField("valid_to"), rome.superseded_by_id) == (KEY, False, "")
    assert (oslo.valid_to, oslo.superseded_by_id) == (day(9), rome.id), "it had ended when it was told of"
    now = {one.id: one for one in await listed(memory, agent)}
    assert (now[paris.id].valid_to, now[paris.id].superseded_by_id) == (day(5), oslo.id)
    assert [one.id for one in await listed(memory, agent, current=True)] == [rome.id]
    assert [one.id for one in await listed(memory, agent, as_of=day(6))] == [oslo.id]
    # Without the one between, the first was true until the last.
    await memory.passages.DeletePassage(pb.DeletePassageRequest(agent_id=agent, passage_id=oslo.id))
    now = {one.id: one for one in await listed(memory, agent)}
    assert (now[paris.id].valid_to, now[paris.id].superseded_by_id) == (day(9), rome.id)
    await memory.passages.DeletePassage(pb.DeletePassageRequest(agent_id=agent, passage_id=rome.id))
    assert [one.id for one in await listed(memory, agent, current=True)] == [paris.id]


async def test_passages_are_superseded_by_their_ids(memory: Memory) -> None:
    agent = await memory.agent_with()
    [first, second] = await tell(
        memory,
        agent,
        pb.PassageDraft(text="The cat is white.", created_at=day(1)),
        pb.PassageDraft(text="The cat is young.", created_at=day(1)),
    )
    new = pb.PassageDraft(id=f"passage-{uuid4()}", text="The cat is grey.", supersedes=[first.id, second.id])
    new.valid_from.CopyFrom(day(7))
    [told] = await tell(memory, agent, new)
    assert [told] == await tell(memory, agent, new), "repeating it changes nothing"
    hits = await memory.search(agent, "How is the cat?")
    assert [hit.passage.id for hit in hits] == [told.id]
    assert places(await memory.search(agent, "How is the cat?", as_of=day(6))) == ["white", "young"]
    with fails(NotFound, "PASSAGE_NOT_FOUND"):
        await tell(memory, agent, pb.PassageDraft(text="x", supersedes=[f"passage-{uuid4()}"]))
    assert len(await listed(memory, agent)) == 3, "nothing is stored then"


async def test_a_change_says_until_when(memory: Memory) -> None:
    agent = await memory.agent_with()
    [paris, rome] = await tell(memory, agent, home("Paris", 1), home("Rome", 9))

    async def change(passage_id: str, **fields: Any) -> passage_pb2.Passage:
        request = pb.UpdatePassageRequest(
            agent_id=agent,
            passage_id=passage_id,
            passage=pb.PassageDraft(**{name: value for name, value in fields.items() if value is not None}),
            update_mask=FieldMask(paths=list(fields)),
        )
        return (await memory.passages.UpdatePassage(request)).passage

    changed = await change(rome.id, valid_to=day(10))
    assert changed.valid_to == day(10)
    assert await memory.search(agent, "cat") == []
    back = await change(paris.id, valid_to=None)
    assert (back.HasField("valid_to"), back.superseded_by_id) == (False, "")
    assert places(await memory.search(agent, "cat")) == ["Paris"]
    with fails(InvalidArgument, "PASSAGE_INVALID"):
        await change(paris.id, valid_from=day(3), valid_to=day(2))


async def test_questions_about_the_past_find_the_past(memory: Memory) -> None:
    agent = await memory.agent_with()
    await tell(memory, agent, home("Paris", 1), home("Oslo", 5), home("Rome", 9))
    assert places(await memory.search(agent, "Where does Ada's cat live?")) == ["Rome"]
    assert places(await memory.search(agent, "Where did Ada's cat live before?")) == ["Oslo", "Paris", "Rome"]
    [then, *_] = await memory.search(agent, "Where did Ada's cat live in June 2024?")
    assert places([then]) == ["Oslo"]


async def test_tools_can_say_so(memory: Memory) -> None:
    agent = await memory.agent_with()

    async def insert(content: str, **more: Any) -> Any:
        return await memory.apply(agent, "archival_memory_insert", content=content, **more)

    async def found(query: str, **more: Any) -> list[str]:
        answer = await memory.apply(agent, "archival_memory_search", query=query, **more)
        return sorted(one["content"] for one in orjson.loads(answer.tool_return)["results"])

    await insert("Ada's cat lives in Paris.", key=KEY)
    stored = await insert("Ada's cat lives in Rome.", key=KEY)
    assert await found("cat") == ["Ada's cat lives in Rome."]
    assert len(await found("cat", history=True)) == 2
    passage_id = stored.tool_return.split()[-1].rstrip(".")
    await insert("Ada has no cat.", supersedes=[passage_id])
    assert await found("cat") == ["Ada has no cat."]
    for wrong, says in ((f"passage-{uuid4()}", "Nothing was stored"), ("Rome", "must be ids of passages")):
        refused = await insert("x", supersedes=[wrong])
        assert refused.is_error
        assert says in refused.tool_return
    assert len(await listed(memory, agent)) == 3


async def test_two_at_the_same_time_leave_one(memory: Memory) -> None:
    agent = await memory.agent_with()
    await tell(memory, agent, pb.PassageDraft(text="Ada has a cat."))
    drafts = [pb.PassageDraft(text=f"Ada's cat lives in place{number}.", key=KEY) for number in range(8)]
    await asyncio.gather(*(tell(memory, agent, draft) for draft in drafts))
    current = await listed(memory, agent, current=True)
    assert len(current) == 2
    assert len(await listed(memory, agent)) == 9


@pytest.mark.parametrize(
    ("draft", "part"),
    [
        (pb.PassageDraft(text="x", key=" "), "a key has 1 to 500"),
        (pb.PassageDraft(text="x", key="k" * 501), "a key has 1 to 500"),
        (pb.PassageDraft(text="x", valid_from=day(3), valid_to=day(2)), "valid_to is before valid_from"),
    ],
)
async def test_what_may_not_be_said(memory: Memory, draft: pb.PassageDraft, part: str) -> None:
    agent = await memory.agent_with()
    with fails(InvalidArgument, "PASSAGE_INVALID") as caught:
        await tell(memory, agent, draft)
    assert part in caught[0].message
    with fails(InvalidArgument, "QUERY_INVALID"):
        await memory.search(agent, "x", as_of=day(1), history=True)
