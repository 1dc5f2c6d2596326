"""Chats as Ollama's own API has them, and its replies."""

from dataclasses import replace
from typing import Any

import orjson
import pytest

from services.llm_gateway.core.chat import (
    FinishReason,
    Image,
    Message,
    Part,
    Reasoning,
    ResponseFormat,
    Role,
    ToolCall,
    ToolMode,
    ToolResult,
    Usage,
)
from services.llm_gateway.core.errors import LlmBadRequest
from services.llm_gateway.core.reply_builder import ReplyBuilder
from services.llm_gateway.vendors.ollama.replies import Reader
from services.llm_gateway.vendors.ollama.translate import body_of
from tests.unit.llm_gateway.builders import assistant, call, model, request, results, system, tool, user

HANDLE = "ollama/qwen3:8b"


def body(*messages: Message, reasons: bool = False, window: int | None = 8_192, **options: Any) -> dict[str, Any]:
    made = model(HANDLE, window=window)
    made = replace(made, capabilities=replace(made.capabilities, reasoning=reasons))
    sent: dict[str, Any] = orjson.loads(body_of(request(*messages, handle=HANDLE, **options), made, stream=True))
    return sent


def test_the_window_that_is_counted_with_is_named_and_nothing_is_cut_silently() -> None:
    sent = body(user("hello"))
    assert sent["options"] == {"num_ctx": 8_192}
    assert (sent["truncate"], sent["shift"], sent["stream"]) == (False, False, True)
    settings = {"top_p": 0.9, "seed": 7, "stop": ["END"], "top_k": 40, "verbosity": "low"}
    sent = body(user("hello"), temperature=0.2, max_output_tokens=99, settings=settings)
    known = {"top_p": 0.9, "seed": 7, "stop": ["END"], "top_k": 40}
    assert sent["options"] == {"num_ctx": 8_192, "num_predict": 99, "temperature": 0.2, **known}
    assert body(user("hello"), window=None)["options"] == {}


def test_a_history_with_calls_results_and_pictures() -> None:
    picture = Image("iVBORw==", media_type="image/png")
    shown = Message(Role.TOOL, [ToolResult("c2", [picture])])
    first, second = call("c1", "dice", n=6), ToolCall("c2", "camera", "not JSON")
    sent = body(system("S"), user("look", picture), assistant("On it.", first, second), results(("c1", "4")), shown)
    assert sent["messages"] == [
        {"role": "system", "content": "S"},
        {"role": "user", "content": "look", "images": ["iVBORw=="]},
        {
            "role": "assistant",
            "content": "On it.",
            "tool_calls": [
                {"id": "c1", "function": {"index": 0, "name": "dice", "arguments": {"n": 6}}},
                {"id": "c2", "function": {"index": 1, "name": "camera", "arguments": {"arguments": "not JSON"}}},
            ],
        },
        {"role": "tool", "content": "4", "tool_name": "dice", "tool_call_id": "c1"},
        {"role": "tool", "content": "", "tool_name": "camera", "tool_call_id": "c2"},
        {"role": "user", "content": "", "images": ["iVBORw=="]},
    ]


def test_an_image_by_url_is_refused_and_so_is_another_part_among_results() -> None:
    with pytest.raises(LlmBadRequest, match="takes images by value alone"):
        body(user(Image(url="https://host/a.png")))
    with pytest.raises(LlmBadRequest, match="tool results only"):
        body(Message(Role.TOOL, user("x").parts))


def test_thoughts_go_back_within_a_turn_alone() -> None:
    thinking: list[Part] = [Reasoning("hm"), call("c1", "dice")]
    within = body(user("roll"), assistant(*thinking), results(("c1", "4")))
    assert within["messages"][1]["thinking"] == "hm"
    after = body(user("roll"), assistant(*thinking), results(("c1", "4")), assistant("4."), user("again"))
    assert "thinking" not in after["messages"][1]


@pytest.mark.parametrize(
    ("choice", "names"),
    [(ToolMode.AUTO, ["a", "b"]), (ToolMode.REQUIRED, ["a", "b"]), (ToolMode.NONE, None), ("b", ["b"])],
)
def test_tools_by_choice(choice: ToolMode | str, names: list[str] | None) -> None:
    sent = body(user("x"), tools=[tool("a"), tool("b")], tool_choice=choice)
    assert "tool_choice" not in sent
    assert [one["function"]["name"] for one in sent["tools"]] == names if names else "tools" not in sent


@pytest.mark.parametrize(
    ("settings", "think"),
    [
        ({}, None),
        ({"reasoning_effort": "none"}, False),
        ({"reasoning": {"reasoning_effort": "high"}}, "high"),
        ({"thinking": {"type": "enabled"}}, True),
        ({"thinking": {"type": "disabled"}}, False),
        ({"think": True}, True),
    ],
)
def test_thinking(settings: dict[str, Any], think: bool | str | None) -> None:
    assert body(user("x"), settings=settings, reasons=True).get("think") == think
    # A model that does not think refuses the field.
    assert "think" not in body(user("x"), settings=settings)


def test_replies_by_a_schema_and_probabilities() -> None:
    schema = {"type": "object", "properties": {}}
    assert body(user("x"), response_format=ResponseFormat(schema))["format"] == schema
    assert body(user("x"), response_format=ResponseFormat())["format"] == "json"
    sent = body(user("x"), logprobs=True, top_logprobs=3)
    assert (sent["logprobs"], sent["top_logprobs"]) == (True, 3)
    assert "logprobs" not in body(user("x"))


@pytest.mark.parametrize(
    ("last", "finish", "usage"),
    [
        ({"done_reason": "stop", "prompt_eval_count": 5, "eval_count": 2}, FinishReason.STOP, Usage(5, 2)),
        ({"done_reason": "length", "prompt_eval_count": 5, "eval_count": 2}, FinishReason.LENGTH, Usage(5, 2)),
        # Old versions give no reason, and leave out a prompt that was in their cache.
        ({"eval_count": 2}, FinishReason.STOP, Usage(100, 2, estimated=True)),
        ({"done_reason": "load"}, FinishReason.UNKNOWN, None),
    ],
)
def test_the_end_of_a_reply(last: dict[str, Any], finish: FinishReason, usage: Usage | None) -> None:
    builder = ReplyBuilder()
    assert list(Reader(builder, 400).take_event({"model": "m", "message": {"content": ""}, "done": True, **last})) == []
    assert (builder.finish, builder.usage, builder.model) == (finish, usage, "m")


def test_calls_come_whole_and_without_ids_from_old_versions() -> None:
    builder = ReplyBuilder()
    calls = [{"function": {"name": "dice", "arguments": {"n": 6}}}, {"function": {"name": "coin", "arguments": None}}]
    deltas = list(Reader(builder, 1).take_event({"message": {"content": "", "tool_calls": calls}}))
    assert [delta.index for delta in deltas] == [0, 0, 1, 1]
    parts = builder.generation(request(user("x")), "ollama", 1).message.parts
    made = [part for part in parts if isinstance(part, ToolCall)]
    assert [(one.name, one.arguments_json) for one in made] == [("dice", '{"n":6}'), ("coin", "{}")]
    assert len({one.id for one in made}) == 2
