"""The neutral chat as OpenAI's Responses."""

from collections.abc import Sequence
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.llm_gateway.core.chat import (
    ChatRequest,
    Image,
    Message,
    Part,
    Reasoning,
    RedactedReasoning,
    ResponseFormat,
    Role,
    Text,
    ToolCall,
    ToolMode,
    ToolResult,
)
from services.llm_gateway.core.errors import LlmBadRequest
from services.llm_gateway.core.models import ChatModel
from services.llm_gateway.vendors.responses.translate import Terms, body_of, count_body_of, items_of
from tests.fakes.responses_rules import FOREIGN, refusal
from tests.unit.llm_gateway.builders import assistant, call, model, request, system, tool, user

GPT5 = model("openai/gpt-5")
PNG = Image("iVBORw==", media_type="image/png")


def made(asked: ChatRequest, of: ChatModel = GPT5, terms: Terms | None = None) -> dict[str, Any]:
    body: dict[str, Any] = orjson.loads(orjson.dumps(body_of(asked, of, "openai", terms or Terms())))
    assert refusal(body, body["input"]) is None
    return body


def seal(text: str) -> str:
    return f"openai:rs_1:{text}"


def test_a_conversation() -> None:
    asked = request(
        system("Be kind."),
        user("Roll, please.", PNG),
        assistant(
            Reasoning("They want a roll.", seal("abc")),
            RedactedReasoning(seal("def")),
            "Rolling.",
            call("c1", "roll", n=6),
        ),
        Message(Role.TOOL, [ToolResult("c1", [Text("4"), PNG])]),
        assistant("You got a 4."),
        system("Time is short."),
        user("Thanks."),
    )
    body = made(asked)
    url = "data:image/png;base64,iVBORw=="
    picture = {"type": "input_image", "image_url": url, "detail": "auto"}
    assert body["instructions"] == "Be kind."
    assert body["input"] == [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Roll, please."}, picture]},
        {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [{"type": "summary_text", "text": "They want a roll."}],
            "encrypted_content": "abc",
        },
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "def"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Rolling."}]},
        {"type": "function_call", "call_id": "c1", "name": "roll", "arguments": '{"n":6}'},
        {"type": "function_call_output", "call_id": "c1", "output": [{"type": "input_text", "text": "4"}, picture]},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "You got a 4."}]},
        {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "Time is short."}]},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Thanks."}]},
    ]
    assert body["store"] is False
    assert body["include"] == ["reasoning.encrypted_content"]
    assert body["reasoning"] == {"effort": "minimal", "summary": "auto"}


@pytest.mark.parametrize(
    "thought",
    [
        Reasoning("mine", "sig-of-anthropic"),
        Reasoning("mine", "azure:rs_1:abc"),
        Reasoning("mine"),
        Reasoning("not encrypted", "openai:rs_1:"),
        RedactedReasoning("opaque"),
    ],
)
def test_thoughts_of_others_are_left_out(thought: Part) -> None:
    body = made(request(user("hi"), assistant(thought, "so"), user("on")))
    assert [item["type"] for item in body["input"]] == ["message"] * 3


def test_thoughts_that_nothing_follows_are_left_out() -> None:
    body = made(request(user("hi"), assistant("so", Reasoning("cut off", seal("abc"))), user("on")))
    assert [item["type"] for item in body["input"]] == ["message"] * 3


def test_without_thoughts_and_summary() -> None:
    asked = request(user("hi"), assistant(Reasoning("so", seal(FOREIGN)), "so", "then"), user("on"))
    body = made(asked, terms=Terms(thoughts=False, summary=False))
    assert [item["type"] for item in body["input"]] == ["message"] * 3
    assert [part["text"] for part in body["input"][1]["content"]] == ["so", "then"]
    assert body["reasoning"] == {"effort": "minimal"}


def test_the_phase_of_a_message_goes_back() -> None:
    said = assistant(
        Text("Looking.", "openai:commentary"), Text("It is 4.", "openai:final_answer"), Text("So.", "other")
    )
    items = items_of(request(user("hi"), said), "openai")[1][1:]
    assert [(item.get("phase"), len(item["content"])) for item in items] == [
        ("commentary", 1),
        ("final_answer", 1),
        (None, 1),
    ]


def test_fields() -> None:
    asked = request(
        user("hi"),
        tools=[tool("roll", required=["n"], n="integer"), tool("exact", required=["n"], strict=True, n="integer")],
        tool_choice="roll",
        parallel_tool_calls=False,
        temperature=0.3,
        max_output_tokens=3,
        settings={"reasoning": {"reasoning_effort": "minimal"}, "verbosity": "low", "seed": 1, "service_tier": "flex"},
        response_format=ResponseFormat({"type": "object", "properties": {}}, "reply"),
        cache_key="agent-1",
    )
    body = made(asked)
    assert [one["strict"] for one in body["tools"]] == [False, True]
    assert body["tools"][1]["parameters"]["additionalProperties"] is False
    assert body["tool_choice"] == {"type": "function", "name": "roll"}
    assert body["parallel_tool_calls"] is False
    assert body["max_output_tokens"] == 16
    assert body["reasoning"] == {"effort": "minimal", "summary": "auto"}
    assert body["text"]["verbosity"] == "low"
    assert body["text"]["format"]["type"] == "json_schema"
    assert (body["service_tier"], body["prompt_cache_key"]) == ("flex", "agent-1")
    assert not body.keys() & {"temperature", "seed"}
    counted = orjson.loads(count_body_of(asked, GPT5, "openai"))
    assert counted.keys() == {"model", "input", "tools", "tool_choice", "parallel_tool_calls", "reasoning", "text"}


def test_fields_of_a_model_that_does_not_reason() -> None:
    asked = request(
        user("hi"), temperature=0.3, logprobs=True, top_logprobs=2, settings={"top_p": 0.5}, cache_key="k" * 65
    )
    body = made(asked, model("openai/gpt-4o"))
    assert (body["temperature"], body["top_p"], body["top_logprobs"]) == (0.3, 0.5, 2)
    assert body["include"] == ["message.output_text.logprobs"]
    assert len(body["prompt_cache_key"]) == 64
    assert "reasoning" not in body


@pytest.mark.parametrize(
    ("name", "effort", "sent"),
    [
        ("gpt-5", "none", "minimal"),
        ("gpt-5.1", "minimal", "none"),
        ("o3", "minimal", "low"),
        ("gpt-6", "xhigh", "xhigh"),
    ],
)
def test_efforts_with_tools(name: str, effort: str, sent: str) -> None:
    asked = request(user("hi"), tools=[tool("f")], settings={"reasoning_effort": effort})
    assert made(asked, model(f"openai/{name}"))["reasoning"]["effort"] == sent


def test_models_without_parallel_calls_are_not_asked_for_fewer() -> None:
    asked = request(user("hi"), tools=[tool("f")], parallel_tool_calls=False, tool_choice=ToolMode.REQUIRED)
    body = made(asked, model("openai/o3"))
    assert body["tool_choice"] == "required"
    assert "parallel_tool_calls" not in body


def test_a_tool_message_holds_results() -> None:
    with pytest.raises(LlmBadRequest, match="tool results only"):
        made(request(Message(Role.TOOL, [Text("4")])))


# And back: nothing that the wire carries is lost.

# No database keeps NUL, so no reply does.
_WORDS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=20)
_HIDDEN = st.text("abcdef0123456789+/=:", min_size=1, max_size=30)
_PICTURES = st.just(Image("iVBORw==", media_type="image/png", detail="low"))
_TEXTS = st.builds(Text, _WORDS, st.sampled_from([None, "openai:commentary", "openai:final_answer"]))
_THOUGHTS = st.builds(Reasoning, _WORDS, _HIDDEN.map(seal)) | st.builds(RedactedReasoning, _HIDDEN.map(seal))
_OBJECTS = st.dictionaries(_WORDS, st.integers(0, 99) | _WORDS, max_size=3)
_ARGUMENTS = _OBJECTS.map(lambda value: orjson.dumps(value).decode())


@st.composite
def _turns(draw: st.DrawFn) -> list[Message]:
    """Returns the user's message, the model's, and the results of its calls."""
    said = draw(st.lists(_TEXTS | _THOUGHTS, max_size=4))
    calls = [
        ToolCall(draw(st.uuids()).hex, "f", draw(_ARGUMENTS))
        for _ in range(draw(st.integers(min_value=0, max_value=2)))
    ]
    parts: list[Part] = [*said, *calls]
    while parts and isinstance(parts[-1], Reasoning | RedactedReasoning):
        parts.pop()
    given = st.lists(_WORDS.map(Text) | _PICTURES, min_size=1, max_size=3)
    turn = [Message(Role.USER, draw(given))]
    turn += [Message(Role.ASSISTANT, parts)] if parts else []
    if calls:
        turn.append(Message(Role.TOOL, [ToolResult(one.id, draw(given)) for one in calls]))
    return turn


@given(st.lists(_turns(), max_size=3), _WORDS)
def test_there_and_back(turns: list[list[Message]], instructions: str) -> None:
    messages = [message for turn in turns for message in turn]
    told, items = items_of(request(system(instructions), *messages), "openai")
    assert told == instructions
    assert refusal({"model": "gpt-5"}, items or [{"type": "message", "role": "user"}]) is None
    assert back(orjson.loads(orjson.dumps(items))) == [(message.role, flat(message.parts)) for message in messages]


def flat(parts: Sequence[Part]) -> list[Any]:
    """Parts by what they say; of a result the texts are one, as no wire tells where they were parted."""
    return [
        ("result", part.tool_call_id, contents(part.content)) if isinstance(part, ToolResult) else part
        for part in parts
    ]


def contents(parts: Sequence[Text | Image]) -> Any:
    if all(isinstance(part, Text) for part in parts):
        return "\n".join(part.text for part in parts if isinstance(part, Text))
    return list(parts)


def back(items: Sequence[dict[str, Any]]) -> list[tuple[Role, list[Any]]]:
    """The messages that the items say."""
    found: list[tuple[Role, list[Any]]] = []
    for item in items:
        role, parts = part_of(item)
        if found and found[-1][0] is role and role in (Role.ASSISTANT, Role.TOOL):
            found[-1][1].extend(parts)
        else:
            found.append((role, parts))
    return found


def part_of(item: dict[str, Any]) -> tuple[Role, list[Any]]:
    match item["type"]:
        case "reasoning":
            sealed = f"openai:{item['id']}:{item['encrypted_content']}"
            summary = item["summary"]
            return Role.ASSISTANT, [Reasoning(summary[0]["text"], sealed) if summary else RedactedReasoning(sealed)]
        case "function_call":
            return Role.ASSISTANT, [ToolCall(item["call_id"], item["name"], item["arguments"])]
        case "function_call_output":
            output = item["output"]
            content = output if isinstance(output, str) else [content_of(part) for part in output]
            return Role.TOOL, [("result", item["call_id"], content)]
        case _ if item["role"] == "assistant":
            phase = f"openai:{item['phase']}" if "phase" in item else None
            return Role.ASSISTANT, [Text(part["text"], phase) for part in item["content"]]
        case _:
            return Role.USER, [content_of(part) for part in item["content"]]


def content_of(part: dict[str, Any]) -> Text | Image:
    if part["type"] == "input_text":
        return Text(part["text"])
    media_type, _, data = part["image_url"].removeprefix("data:").partition(";base64,")
    return Image(data, media_type=media_type, detail=part["detail"])
