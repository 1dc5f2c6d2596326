"""What stands beside a passage that was found: it counts in a hybrid search, and an answer can bring it along."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from loci.memory.v1 import passage_pb2
from loci.memory.v1 import passage_service_pb2 as pb
from services.common.errors import InvalidArgument
from services.common.search_settings import STANDARD
from tests.integration.memory.files import new_folder, upload
from tests.integration.memory.harness import ConceptModels, Memory, embeddings, fails, memory_service

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
TALK = ("We got a parrot!", "How is it called?", "Biscuit.", "The weather is bad.", "It rains.", "All day.")


async def talk(memory: Memory, *texts: str, step: timedelta = timedelta(seconds=30), tags: Sequence[str] = ()) -> str:
    """The agent whose archive has the texts, without vectors, one after the other."""
    agent = await memory.agent_with()
    for place, text in enumerate(texts):
        draft = pb.PassageDraft(text=text, tags=tags)
        draft.created_at.FromDatetime(NOON + place * step)
        await memory.passages.CreatePassages(pb.CreatePassagesRequest(agent_id=agent, passages=[draft]))
    return agent


def texts(hits: Sequence[Any]) -> list[str]:
    return [hit.passage.text for hit in hits]


async def test_the_answer_two_turns_later_is_found_without_a_word_of_the_question(memory: Memory) -> None:
    agent = await talk(memory, *TALK)
    assert texts(await memory.search(agent, "the name of the parrot")) == list(TALK[:3])
    assert texts(await memory.search(agent, "parrot", mode=passage_pb2.SEARCH_MODE_TEXT)) == [TALK[0]]


async def test_what_lies_half_an_hour_apart_is_no_neighbour(memory: Memory) -> None:
    agent = await talk(memory, *TALK, step=timedelta(minutes=20))
    assert texts(await memory.search(agent, "parrot")) == list(TALK[:2])


async def test_neighbours_are_of_one_archive_and_pass_the_filter(memory: Memory) -> None:
    agent = await talk(memory, TALK[0], tags=["pets"])
    await talk(memory, *TALK[1:])
    assert texts(await memory.search(agent, "parrot")) == [TALK[0]]
    later = [pb.PassageDraft(text="Yes.", tags=["pets"]), pb.PassageDraft(text="No.")]
    for draft in later:
        draft.created_at.FromDatetime(NOON + timedelta(seconds=1))
    await memory.passages.CreatePassages(pb.CreatePassagesRequest(agent_id=agent, passages=later))
    assert texts(await memory.search(agent, "parrot", tags=["pets"])) == [TALK[0], "Yes."]
    assert set(texts(await memory.search(agent, "parrot"))) == {TALK[0], "Yes.", "No."}


async def test_a_setting_turns_it_off(memory: Memory, memory_url: str, tmp_path: Path) -> None:
    agent = await talk(memory, *TALK)
    models = ConceptModels()  # type: ignore[abstract] # the rest of that service is not called
    async with (
        embeddings(tmp_path, models) as channel,
        memory_service(
            memory_url,
            tmp_path,
            llm_channel=channel,
            models=models,
            search_settings=replace(STANDARD, neighbour_share=0.0),
        ) as other,
    ):
        with other.of(memory.caller.organization_id):
            assert texts(await other.search(agent, "parrot")) == [TALK[0]]


async def test_a_hit_brings_its_neighbours_along(memory: Memory) -> None:
    agent = await talk(memory, *TALK)
    mode = passage_pb2.SEARCH_MODE_TEXT
    (hit,) = await memory.search(agent, "weather", mode=mode, context=1)
    assert ([one.text for one in hit.before], [one.text for one in hit.after]) == ([TALK[2]], [TALK[4]])
    (hit,) = await memory.search(agent, "weather", mode=mode, context=10)
    assert ([one.text for one in hit.before], [one.text for one in hit.after]) == (list(TALK[:3]), list(TALK[4:]))
    (hit,) = await memory.search(agent, "weather", mode=mode)
    assert (list(hit.before), list(hit.after)) == ([], [])


async def test_passages_of_one_moment_are_in_the_order_in_which_they_were_stored(memory: Memory) -> None:
    agent = await memory.agent_with()
    await memory.store(agent, *TALK, embedding="")
    (hit,) = await memory.search(agent, "weather", mode=passage_pb2.SEARCH_MODE_TEXT, context=2)
    assert ([one.text for one in hit.before], [one.text for one in hit.after]) == (list(TALK[1:3]), list(TALK[4:]))


@pytest.mark.parametrize("context", [-1, 11])
async def test_more_than_ten_are_refused(memory: Memory, context: int) -> None:
    agent = await talk(memory, TALK[0])
    with fails(InvalidArgument, "QUERY_INVALID") as caught:
        await memory.search(agent, "parrot", context=context)
    assert "context is 0 to 10" in caught[0].message


async def test_a_piece_of_a_file_has_its_neighbours_in_the_file(memory: Memory) -> None:
    folder = await new_folder(memory, "talk", embedding="")
    paragraphs = [f"# Part {number}\n" + f"about topic{number} " * 90 for number in range(5)]
    await upload(memory, folder, "a.md", "\n\n".join(paragraphs).encode())
    await upload(memory, folder, "b.md", b"# Another\nsomething else")
    worker = memory.worker()
    while await worker.run_one():
        pass
    request = pb.SearchPassagesRequest(folder_id=folder, query="topic2", top_k=10, context=1)
    hits = (await memory.passages.SearchPassages(request)).hits
    assert [hit.passage.file.place for hit in hits][:1] == [2]
    assert {hit.passage.file.place for hit in hits} == {0, 1, 2, 3, 4}
    assert ([one.file.place for one in hits[0].before], [one.file.place for one in hits[0].after]) == ([1], [3])


async def test_words_of_a_files_name_find_its_pieces(memory: Memory) -> None:
    folder = await new_folder(memory, "notes", embedding="")
    await upload(memory, folder, "harbour_2024-report.md", b"It was full of boats.")
    await upload(memory, folder, "a.md", b"Nothing of the kind.")
    worker = memory.worker()
    while await worker.run_one():
        pass
    request = pb.SearchPassagesRequest(
        folder_id=folder, query="the report of the harbour", mode=passage_pb2.SEARCH_MODE_TEXT
    )
    hits = (await memory.passages.SearchPassages(request)).hits
    assert texts(hits) == ["It was full of boats."]
