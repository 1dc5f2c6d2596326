"""Requests to each Claude: thinking, forced calls, thoughts that are bound to their conversation, strict schemas."""

from typing import Any

import orjson
import pytest

from services.llm_gateway.core.chat import ChatRequest, Reasoning, RedactedReasoning, ResponseFormat, Text, ToolMode
from services.llm_gateway.core.reply_builder import ReplyBuilder
from services.llm_gateway.vendors.anthropic.profiles import Claude, parse_claude
from services.llm_gateway.vendors.anthropic.replies import Reader
from services.llm_gateway.vendors.anthropic.schema import close_schema
from services.llm_gateway.vendors.anthropic.translate import body_of, replies_by_call
from tests.fakes.anthropic_rules import refusal
from tests.unit.llm_gateway.builders import assistant, call, model, request, results, system, tool, user

DROP = {"block_binding": {"prefix_mismatch_behavior": "drop_block"}}


def body(asked: ChatRequest, name: str, *, provider: str = "anthropic") -> dict[str, Any]:
    value: dict[str, Any] = orjson.loads(body_of(asked, model(f"{provider}/{name}"), stream=False))
    if provider == "anthropic":
        assert refusal(value, "2026-10-21") is None
    return value


@pytest.mark.parametrize(
    ("name", "claude"),
    [
        ("claude-opus-4-20250514", Claude("opus", (4, 0))),
        ("claude-opus-4-1-20250805", Claude("opus", (4, 1))),
        ("claude-3-7-sonnet-20250219", Claude("sonnet", (3, 7))),
        ("claude-sonnet-5", Claude("sonnet", (5, 0))),
        ("us.anthropic.claude-haiku-4-5-20251001-v1:0", Claude("haiku", (4, 5))),
        ("claude-fable-5-1", Claude("fable", (5, 1))),
        ("claude-mythos-preview", Claude("mythos", (4, 6))),
        ("gpt-5", None),
    ],
)
def test_names(name: str, claude: Claude | None) -> None:
    assert parse_claude(name) == claude


@pytest.mark.parametrize(
    ("name", "wanted", "effort", "sent"),
    [
        ("claude-haiku-4-5", None, None, {"type": "enabled", "budget_tokens": 1_024}),
        ("claude-3-5-haiku-20241022", None, None, None),
        ("claude-opus-4-8", None, None, {"type": "adaptive", "display": "summarized"}),
        ("claude-haiku-4-5", "adaptive", None, None),
        ("claude-haiku-4-5", "disabled", None, {"type": "disabled"}),
        ("claude-opus-4-8", "disabled", None, {"type": "disabled"}),
        ("claude-opus-5", "disabled", "max", None),
        ("claude-opus-5-5", None, None, {"type": "adaptive", "display": "summarized", **DROP}),
        ("claude-opus-5-5", "disabled", None, {"type": "adaptive", **DROP}),
        ("claude-sonnet-5-5", "disabled", None, {"type": "between_tools"}),
        ("claude-sonnet-5-5", "disabled", "max", {"type": "adaptive", **DROP}),
        ("claude-haiku-5-5", "adaptive", None, {"type": "adaptive", "display": "summarized", **DROP}),
        ("claude-fable-5-1", "disabled", None, {"type": "adaptive", **DROP}),
    ],
)
def test_thinking(name: str, wanted: str | None, effort: str | None, sent: Any) -> None:
    settings = {"thinking": {"type": wanted} if wanted else None, "effort": effort}
    assert body(request(user("x"), settings=settings), name).get("thinking") == sent


def test_a_budget_above_the_limit_of_the_reply_raises_it() -> None:
    settings = {"thinking": {"type": "enabled", "budget_tokens": 4_000}}
    assert body(request(user("x"), settings=settings, max_output_tokens=100), "claude-haiku-4-5")["max_tokens"] == 5_024


@pytest.mark.parametrize("name", ["claude-opus-5-5", "claude-sonnet-5-5", "claude-fable-5-1"])
def test_what_may_not_be_forced_is_asked_for_in_words(name: str) -> None:
    asked = request(system("Be kind."), user("x"), tools=[tool("f")], tool_choice="f", parallel_tool_calls=False)
    made = body(asked, name)
    assert made["tool_choice"] == {"type": "auto", "disable_parallel_tool_use": True}
    *_, marked, said = made["messages"][-1]["content"]
    assert "the tool f" in said["text"]
    # It is no part of what is cached.
    assert "cache_control" in marked
    assert "cache_control" not in said
    made = body(request(user("x"), response_format=ResponseFormat()), name)
    assert "tools" not in made
    assert "one JSON object" in made["messages"][-1]["content"][-1]["text"]
    assert not replies_by_call(request(user("x"), response_format=ResponseFormat()), model(f"anthropic/{name}"))


def history(*thoughts: Any) -> tuple[Any, ...]:
    return user("Roll."), assistant(*thoughts, call("c1", "roll")), results(("c1", "4"))


@pytest.mark.parametrize(
    ("thoughts", "thinks"),
    [
        ((Reasoning("hm", "sig"),), True),
        ((RedactedReasoning("x"),), True),
        ((), False),
        ((Reasoning("hm", "openai:sig"),), False),
        ((Text("Rolling."),), False),
    ],
)
def test_a_turn_that_another_model_began_goes_on_without_thinking_by_budget(thoughts: Any, thinks: bool) -> None:
    settings = {"thinking": {"type": "enabled", "budget_tokens": 1024}}
    asked = request(*history(*thoughts), tools=[tool("roll")], settings=settings)
    assert ("thinking" in body(asked, "claude-haiku-4-5")) is thinks
    # The next turn thinks again, and by themselves they may always.
    asked = request(*history(*thoughts), assistant("4."), user("Again?"), tools=[tool("roll")], settings=settings)
    assert "thinking" in body(asked, "claude-haiku-4-5")
    asked = request(*history(*thoughts), tools=[tool("roll")], settings=settings)
    assert body(asked, "claude-opus-4-8")["thinking"]["type"] == "adaptive"


def test_thoughts_go_to_whom_they_belong() -> None:
    thoughts = (
        Reasoning("a", "sig"),
        Reasoning("b", "google:sig"),
        Reasoning("c", "minimax:m"),
        RedactedReasoning("openai:x"),
        RedactedReasoning("y"),
        Reasoning("unsigned"),
    )

    def sent(name: str, provider: str, **options: Any) -> list[Any]:
        content = body(request(*history(*thoughts), **options), name, provider=provider)["messages"][1]["content"]
        return [block.get("signature", block.get("data")) for block in content[:-1]]

    assert sent("claude-haiku-4-5", "anthropic") == ["sig", "y"]
    assert sent("MiniMax-M3", "minimax") == ["m"]
    assert sent("claude-sonnet-5-5", "anthropic") == ["sig", "y"]
    # Without a way to say that those which fit no more be dropped, none go.
    assert sent("claude-sonnet-5-5", "anthropic", settings={"thinking": {"type": "disabled"}}) == []
    assert sent("claude-haiku-5-5", "anthropic", tools=[tool("f")], tool_choice="f") == []


def test_a_minimax_thought_is_its_own() -> None:
    builder = ReplyBuilder()
    reader = Reader(builder, origin="minimax")
    for event in (
        {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "hm"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "ab"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "cd"}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
    ):
        assert not [delta for delta in reader.take_event(event) if not hasattr(delta, "text")]
    assert list(builder.generation(request(), "minimax", 1).message.parts) == [Reasoning("hm", "minimax:abcd")]


def test_minimax_habits() -> None:
    settings = {"stop_sequences": ["x"], "effort": "low", "service_tier": "auto", "thinking": {"type": "disabled"}}
    made = body(request(user("x"), temperature=0, settings=settings), "MiniMax-M3", provider="minimax")
    assert made["temperature"] == 0.01
    assert made["thinking"] == {"type": "disabled"}
    assert not made.keys() & {"stop_sequences", "service_tier", "output_config"}
    strict = body(request(user("x"), tools=[tool("f", strict=True)]), "MiniMax-M3", provider="minimax")
    assert "strict" not in strict["tools"][0]


def test_four_marks_at_most_and_the_tools_among_them() -> None:
    turns = [part for number in range(5) for part in (user(f"q{number}"), assistant(f"a{number}"))]
    made = body(
        request(system("One."), system("Two."), *turns, user("q"), tools=[tool("f"), tool("g")]), "claude-opus-5"
    )
    assert ["cache_control" in offered for offered in made["tools"]] == [False, True]
    assert ["cache_control" in block for block in made["system"]] == [False, True]
    marked = [turn["role"] for turn in made["messages"] if "cache_control" in turn["content"][-1]]
    assert marked == ["user", "user"]
    assert ["cache_control" in made["messages"][index]["content"][-1] for index in (-1, -2, -3)] == [True, False, True]


def test_strict_tools_are_closed() -> None:
    strict = tool("f", strict=True, n="integer")
    offered = body(request(user("x"), tools=[strict]), "claude-opus-5")["tools"][0]
    assert offered["strict"] is True
    assert offered["input_schema"]["additionalProperties"] is False
    # Older models have no strict tools.
    assert "strict" not in body(request(user("x"), tools=[strict]), "claude-opus-4-1")["tools"][0]


def test_schemas() -> None:
    narrow = {"type": "integer", "minimum": 18, "description": "Years."}
    made = close_schema({"type": "object", "properties": {"age": narrow, "when": {"type": "string", "format": "date"}}})
    assert made == {
        "type": "object",
        "properties": {
            "age": {"type": "integer", "description": "Years. (minimum: 18)"},
            "when": {"type": "string", "format": "date"},
        },
        "additionalProperties": False,
    }
    choice = {"type": "object", "properties": {"a": {"oneOf": [{"type": "string"}, {"$ref": "#/definitions/B"}]}}}
    referring = close_schema({**choice, "definitions": {"B": {"type": "object"}}})
    assert referring is not None
    assert referring["properties"]["a"] == {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/B"}]}
    assert referring["$defs"]["B"]["additionalProperties"] is False


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "array"},
        {"type": "object", "additionalProperties": {"type": "string"}},
        {"type": "object", "properties": {"any": {}}},
        {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"$ref": "#/$defs/A"}}},
        {"type": "object", "properties": {"a": {"type": "array"}}},
        {"type": "object", "properties": {str(n): {"type": "string"} for n in range(30)}},
        {"type": "object", "patternProperties": {"x": {"type": "string"}}},
    ],
)
def test_schemas_without_a_form(schema: dict[str, Any]) -> None:
    assert close_schema(schema) is None
    if schema["type"] == "object":
        offered = request(user("x"), response_format=ResponseFormat(schema))
        assert replies_by_call(offered, model("anthropic/claude-opus-5"))


def test_why_it_declined_is_the_text_where_nothing_else_came() -> None:
    builder = ReplyBuilder()
    details = {"type": "refusal", "category": "cyber", "explanation": "It would harm."}
    reply = {"id": "m", "model": "c", "content": [], "stop_reason": "refusal", "stop_details": details, "usage": {}}
    Reader(builder).take_whole(reply)
    made = builder.generation(request(), "anthropic", 1)
    assert list(made.message.parts) == [Text("It would harm.")]
    assert made.finish_reason.name == "CONTENT_FILTER"


def test_none_is_a_choice_of_the_wire() -> None:
    made = body(request(user("x"), tools=[tool("f")], tool_choice=ToolMode.NONE), "claude-opus-5-5")
    assert made["tool_choice"] == {"type": "none"}
    assert made["messages"][-1]["content"][-1]["text"] == "x"
