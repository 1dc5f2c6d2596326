"""The demo model: rules, tools, memory; and the hash embeddings."""

import math
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.llm_gateway.core.chat import (
    ChatRequest,
    Completed,
    Event,
    FinishReason,
    Generation,
    Message,
    Text,
    TextDelta,
    ToolCall,
    ToolMode,
    ToolSpec,
)
from services.llm_gateway.core.errors import LlmContextOverflow
from services.llm_gateway.vendors.demo.client import DemoProvider
from services.llm_gateway.vendors.demo.directives import parse_value
from services.llm_gateway.vendors.demo.hashing import DIMENSIONS, embed
from tests.unit.llm_gateway.builders import assistant, config, model, request, results, system, tool, user

INSERT = tool("memory_insert", label="string", new_string="string", insert_line="integer")
REPLACE = tool("memory_replace", label="string", old_string="string", new_string="string")
APPEND = tool("core_memory_append", label="string", content="string")
ARCHIVE = tool("archival_memory_insert", content="string")
SEARCH = tool("archival_memory_search", query="string")
RECALL = tool("conversation_search", query="string")
DICE = tool("roll_dice", num_sides="integer", label="string", loaded="boolean", weights="array", options="object")
DEMO = DemoProvider(config("loci"))


def prompt(human: str = "", **blocks: str) -> Message:
    """A system prompt as agents have it."""
    shown = {"human": human, "persona": "My name is Loci.", **blocks}
    rendered = "\n\n".join(
        f"<{label}>\n<description>\nAbout {label}.\n</description>\n<metadata>\n- chars_current=3\n</metadata>\n"
        f"<value>\n{value}\n</value>\n</{label}>"
        for label, value in shown.items()
    )
    return system(f"You help.\n\n<memory_blocks>\nCore memory.\n\n{rendered}\n</memory_blocks>\n\n<memory_metadata/>")


async def ask(asked: ChatRequest, *, stream: bool = False, window: int = 100_000) -> list[Event]:
    return [event async for event in DEMO.generate(asked, model("loci/demo", window=window), stream=stream)]


async def reply(*messages: Message, tools: list[ToolSpec] | None = None, **options: Any) -> Generation:
    (completed,) = await ask(request(*messages, handle="loci/demo", tools=tools or [], **options))
    assert isinstance(completed, Completed)
    return completed.generation


async def calls(*messages: Message, tools: list[ToolSpec], **options: Any) -> list[tuple[str, Any]]:
    generation = await reply(*messages, tools=tools, **options)
    assert generation.finish_reason is FinishReason.TOOL_CALLS
    made = [part for part in generation.message.parts if isinstance(part, ToolCall)]
    return [(part.name, orjson.loads(part.arguments_json)) for part in made]


async def says(*messages: Message, tools: list[ToolSpec] | None = None, **options: Any) -> str:
    generation = await reply(*messages, tools=tools, **options)
    (part,) = generation.message.parts
    assert isinstance(part, Text)
    assert "loci/demo, a demonstration that follows a few fixed rules" in part.text
    return part.text


async def test_it_notes_names_and_likes_and_confirms() -> None:
    told = [prompt("Nothing is known yet."), user("My name is Ada and I like Haskell.")]
    expected = {"label": "human", "new_string": "Name: Ada\nLikes: Haskell"}
    assert await calls(*told, tools=[INSERT, REPLACE, RECALL]) == [("memory_insert", expected)]
    made = (await reply(*told, tools=[INSERT])).message.parts[0]
    assert isinstance(made, ToolCall)
    wrapped = '{"status": "OK", "message": "done", "time": "now"}'
    assert "Nice to meet you, Ada." in await says(*told, assistant(made), results((made.id, wrapped)), tools=[INSERT])
    failed = '{"status": "Failed", "message": "no such block", "time": "now"}'
    answer = await says(*told, assistant(made), results((made.id, failed)), tools=[INSERT])
    assert "could not keep that. memory_insert failed: no such block" in answer


async def test_it_edits_with_whatever_memory_tool_there_is() -> None:
    told = user("call me Grace")
    assert await calls(prompt(), told, tools=[APPEND]) == [
        ("core_memory_append", {"label": "human", "content": "Name: Grace"})
    ]
    assert await calls(prompt("Name: Ada\nLikes: tea"), told, tools=[INSERT, REPLACE]) == [
        ("memory_replace", {"label": "human", "old_string": "Name: Ada", "new_string": "Name: Grace"})
    ]
    assert await calls(system("No blocks here."), told, tools=[INSERT])
    assert "no memory tool" in await says(prompt(), told, tools=[DICE])
    assert "knew that already" in await says(prompt("Name: Grace"), told, tools=[INSERT])


async def test_it_answers_from_its_memory_blocks() -> None:
    assert "Your name is Ada." in await says(prompt("Name: Ada\nLikes: Haskell"), user("What is my name?"))
    assert "Your name is Sarah." in await says(prompt("The user's name is Sarah."), user("who am I"))
    assert "do not know your name" in await says(prompt("Nothing is known yet."), user("what's my name?"))
    assert "You like Haskell, tea." in await says(prompt("Likes: Haskell\nLikes: tea"), user("What do I like?"))


async def test_it_remembers_and_searches() -> None:
    told = user("Please remember that the key is under the mat.")
    assert await calls(prompt(), told, tools=[INSERT, ARCHIVE]) == [
        ("archival_memory_insert", {"content": "the key is under the mat."})
    ]
    assert await calls(prompt(), told, tools=[INSERT]) == [
        ("memory_insert", {"label": "human", "new_string": "the key is under the mat."})
    ]
    asked = [prompt("Likes: old keys"), user("What do you know about the key?")]
    assert await calls(*asked, tools=[SEARCH, RECALL]) == [("archival_memory_search", {"query": "the key"})]
    assert await calls(*asked, tools=[RECALL]) == [("conversation_search", {"query": "the key"})]
    made = ToolCall("c1", "archival_memory_search", "{}")
    answer = await says(*asked, assistant(made), results(("c1", "1. under the mat")), tools=[SEARCH])
    assert "Likes: old keys" in answer
    assert "under the mat" in answer


async def test_it_calls_tools_as_it_is_told() -> None:
    told = "use roll_dice with num_sides=20, label='a, b', loaded=True, weights=[1, 2], options={\"x\": 1}."
    expected = {"num_sides": 20, "label": "a, b", "loaded": True, "weights": [1, 2], "options": {"x": 1}}
    assert await calls(user(told), tools=[DICE]) == [("roll_dice", expected)]
    assert await calls(user("Use the tool roll_dice!"), tools=[DICE]) == [("roll_dice", {})]
    assert await calls(user("use roll_dice with num_sides=many"), tools=[DICE]) == [
        ("roll_dice", {"num_sides": "many"})
    ]
    assert "no tool called no_such_tool. My tools: roll_dice" in await says(user("use no_such_tool"), tools=[DICE])
    assert "I understand" in await says(user("I use Python at work"), tools=[DICE])


async def test_several_tools_one_after_another_or_at_once() -> None:
    told = user("use roll_dice with num_sides=6 then memory_insert with label=human, new_string=x and y")
    tools = [DICE, INSERT]
    first = await reply(told, tools=tools)
    (one,) = first.message.parts
    assert isinstance(one, ToolCall)
    after = [told, assistant(one), results((one.id, "rolled 4"))]
    assert await calls(*after, tools=tools) == [("memory_insert", {"label": "human", "new_string": "x and y"})]
    two = (await reply(*after, tools=tools)).message.parts[0]
    assert isinstance(two, ToolCall)
    answer = await says(*after, assistant(two), results((two.id, "oops"), is_error=True), tools=tools)
    assert "roll_dice returned: rolled 4\nmemory_insert failed: oops" in answer

    at_once = user("use roll_dice with num_sides=6 and roll_dice with num_sides=8 then use memory_insert")
    assert [name for name, _ in await calls(at_once, tools=tools)] == ["roll_dice", "roll_dice"]
    assert len(await calls(at_once, tools=tools, parallel_tool_calls=False)) == 1


async def test_tool_choice() -> None:
    needy = tool("f", required=["n", "s"], n="integer", s="string")
    assert await calls(user("hi"), tools=[needy], tool_choice=ToolMode.REQUIRED) == [("f", {"n": 1, "s": "hi"})]
    assert await calls(user("hi"), tools=[DICE, needy], tool_choice="f") == [("f", {"n": 1, "s": "hi"})]
    assert "My tools: none" in await says(user("use roll_dice"), tools=[DICE], tool_choice=ToolMode.NONE)


async def test_it_summarises_a_transcript_by_what_was_said_in_it() -> None:
    transcript = (
        "The transcript follows.\n<transcript>\n[2026-01-01 10:00] user: my name is Ada\n"
        "[2026-01-01 10:01] assistant: Hello.\n[2026-01-01 10:02] user Bob: " + "x" * 500 + "\n</transcript>\nNow."
    )
    said = await says(user(transcript))
    assert "among 2 things" in said
    assert "- my name is Ada\n- xxx" in said
    assert "Hello" not in said
    assert len(said) < 500


async def test_it_streams_word_by_word_and_is_deterministic() -> None:
    asked = request(user("hello"), handle="loci/demo")
    events = await ask(asked, stream=True)
    *deltas, completed = events
    assert isinstance(completed, Completed)
    assert len(deltas) > 10
    whole = completed.generation.message.parts[0]
    assert isinstance(whole, Text)
    assert "".join(delta.text for delta in deltas if isinstance(delta, TextDelta)) == whole.text
    assert completed.generation.usage.estimated
    assert events == await ask(asked, stream=True)
    assert await ask(asked) == [completed]


async def test_limits() -> None:
    cut = await reply(user("hello"), max_output_tokens=3)
    assert cut.finish_reason is FinishReason.LENGTH
    assert cut.usage.completion_tokens == 3
    with pytest.raises(LlmContextOverflow, match="context window of loci/demo has 50"):
        await ask(request(user("x" * 1000), handle="loci/demo"), window=50)


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("6", "integer", 6),
        ("2.5", "number", 2.5),
        ("false", "boolean", False),
        ("6", "string", "6"),
        ('"6"', "integer", 6),
        ("a; b", "array", ["a", "b"]),
        ("{broken", "object", "{broken"),
        ("“curly”", "string", "curly"),
    ],
)
def test_values_by_the_schemas_type(text: str, kind: str, value: object) -> None:
    assert parse_value(text, kind) == value


@given(st.text(max_size=200))
def test_vectors_have_length_one(text: str) -> None:
    vector = embed(text)
    assert len(vector) == DIMENSIONS
    assert math.isclose(sum(value * value for value in vector), 1, rel_tol=1e-9)


def test_texts_that_share_words_or_stems_are_near() -> None:
    def near(first: str, second: str) -> float:
        return sum(a * b for a, b in zip(embed(first), embed(second), strict=True))

    compiler = "Ada's first compiler was GHC 4.08."
    assert near("Which compiler did Ada use first?", compiler) > near("Where is the cat?", compiler) + 0.2
    assert near("cat", "cats") > 0.3
    assert near("The Cat.", "the cat") == pytest.approx(1)
    assert abs(near("quantum chromodynamics", "buttered toast")) < 0.2
