"""The neutral chat as Google's generateContent."""

from dataclasses import replace
from typing import Any

import orjson
import pytest

from services.llm_gateway.core.chat import (
    ChatRequest,
    Image,
    Message,
    Reasoning,
    RedactedReasoning,
    ResponseFormat,
    Role,
    Text,
    ToolCall,
    ToolMode,
    ToolResult,
    ToolSpec,
)
from services.llm_gateway.core.errors import LlmBadRequest
from services.llm_gateway.core.models import ChatModel
from services.llm_gateway.vendors.google.contents import ANOTHERS_CALL, generation_of
from services.llm_gateway.vendors.google.translate import body_of, count_body_of
from tests.fakes.google_server import FIELDS, complain
from tests.unit.llm_gateway.builders import assistant, call, model, request, results, system, tool, user

OLD, NEW = "google_ai/gemini-2.5-flash", "google_ai/gemini-3-flash-preview"
PICTURE = Image("iVBORw==", media_type="image/png")
INLINE = {"inlineData": {"mimeType": "image/png", "data": "iVBORw=="}}


def sent(asked: ChatRequest, handle: str | ChatModel = NEW) -> dict[str, Any]:
    """The request's body, which the fake vendor accepts."""
    asked_of = model(handle) if isinstance(handle, str) else handle
    value: dict[str, Any] = orjson.loads(orjson.dumps(body_of(asked, asked_of)))
    fields = FIELDS | {"store"} if asked_of.provider_type == "google_ai" else FIELDS
    assert complain(value, asked_of.name, fields) is None
    # Google AI keeps what it is sent unless it is told not to; Vertex refuses the word.
    assert value.pop("store", None) is (False if asked_of.provider_type == "google_ai" else None)
    return value


def text(value: str, **fields: Any) -> dict[str, Any]:
    return {"text": value, **fields}


def called(id: str, name: str, **args: Any) -> dict[str, Any]:
    return {"functionCall": {"id": id, "name": name, "args": args}}


def answered(id: str, name: str, **response: Any) -> dict[str, Any]:
    return {"functionResponse": {"id": id, "name": name, "response": response}}


def test_a_whole_conversation() -> None:
    asked = request(
        system("Be kind."),
        user("Roll twice."),
        assistant(
            Reasoning("hm", "google:"),
            Reasoning("signed", "google:s1"),
            Text("Rolling.", "google:s2"),
            RedactedReasoning("google:s3"),
            call("c1", "roll", n=6),
            call("c2", "roll"),
        ),
        results(("c2", "no"), is_error=True),
        results(("c1", "4")),
        user("And?"),
        tools=[tool("roll", n="integer")],
    )
    made = sent(asked)
    assert made["systemInstruction"] == {"parts": [text("Be kind.")]}
    assert [content["role"] for content in made["contents"]] == ["user", "model", "user"]
    assert made["contents"][1]["parts"] == [
        text("hm", thought=True),
        text("signed", thought=True, thoughtSignature="s1"),
        text("Rolling.", thoughtSignature="s2"),
        {**called("c1", "roll", n=6), "thoughtSignature": "s3"},
        called("c2", "roll"),
    ]
    # Results stand in the order of their calls, and before what else was said.
    assert made["contents"][2]["parts"] == [
        answered("c1", "roll", output="4"),
        answered("c2", "roll", error="no"),
        text("And?"),
    ]
    (declared,) = made["tools"][0]["functionDeclarations"]
    assert declared["parametersJsonSchema"]["properties"] == {"n": {"type": "integer"}}


def test_a_history_of_other_vendors_is_signed_for_them() -> None:
    theirs = (Reasoning("hm", "sig"), Reasoning("plain"), RedactedReasoning("openai:x"), Text("Go.", "openai:y"))
    asked = request(user("x"), assistant(*theirs, call("c1", "f"), call("c2", "g")), results(("c1", ""), ("c2", "")))
    assert sent(asked)["contents"][1]["parts"] == [
        text("Go."),
        {**called("c1", "f"), "thoughtSignature": ANOTHERS_CALL},
        called("c2", "g"),
    ]
    # Gemini 2.5 asks for none.
    assert sent(asked, OLD)["contents"][1]["parts"] == [text("Go."), called("c1", "f"), called("c2", "g")]


def test_a_signature_that_stands_alone_goes_back_in_an_empty_text() -> None:
    alone = assistant(call("c", "f"), RedactedReasoning("google:s"))
    parts = sent(request(user("x"), alone, results(("c", "1"))))["contents"][1]["parts"]
    assert parts[1] == text("", thoughtSignature="s")
    before_text = assistant(RedactedReasoning("google:s"), "Hi.", RedactedReasoning("google:t"))
    parts = sent(request(user("x"), before_text, user("y")))["contents"][1]["parts"]
    assert parts == [text("", thoughtSignature="s"), text("Hi."), text("", thoughtSignature="t")]


@pytest.mark.parametrize(
    ("name", "generation"),
    [
        ("gemini-2.5-pro", 2),
        ("gemini-3.8-flash", 3),
        ("gemini-4-argon", 4),
        ("gemini-flash-latest", 99),
        ("gemma-4", 0),
    ],
)
def test_generations(name: str, generation: int) -> None:
    assert generation_of(model(f"google_ai/{name}")) == generation
    assert generation_of(replace(model("google_vertex/endpoints/7"), base_model=name)) == generation


def test_a_history_that_begins_or_ends_with_the_model_and_one_of_nothing() -> None:
    contents = sent(request(assistant("Hi."), user("x"), assistant("y")))["contents"]
    assert [content["role"] for content in contents] == ["user", "model", "user", "model", "user"]
    assert [content["role"] for content in sent(request(system("Begin.")))["contents"]] == ["user"]


def test_empty_texts_are_left_out() -> None:
    contents = sent(request(user("x", ""), assistant("", call("c", "f")), user(""), results(("c", ""))))["contents"]
    assert [len(content["parts"]) for content in contents] == [1, 1, 1]


def test_results_without_a_call_and_ids_that_come_twice() -> None:
    orphan = sent(request(user("x"), results(("c9", "17"))))["contents"]
    assert orphan == [{"role": "user", "parts": [text("x"), text("(The result of an earlier call: 17)")]}]
    step = (assistant(call("call_0", "f")), results(("call_0", "1")))
    contents = sent(request(user("x"), *step, *step))["contents"]
    ids = [content["parts"][0]["functionResponse"]["id"] for content in contents[2::2]]
    assert len(set(ids)) == 2


def test_arguments_that_are_no_object() -> None:
    broken = ToolCall("c", "f", '{"a": 1,,}')
    made = sent(request(user("x"), assistant(broken), results(("c", "bad"))))
    assert made["contents"][1]["parts"][0]["functionCall"]["args"] == {"unparsed_arguments": '{"a": 1,,}'}


def test_pictures() -> None:
    link, dark = Image(url="https://host/p.png?x=1"), Image(url="https://host/p")
    drawn = Message(Role.TOOL, [ToolResult("c", [Text("chart"), PICTURE, link])])
    asked = request(user(PICTURE, link, dark), assistant(call("c", "draw")), drawn)
    first, _, last = sent(asked)["contents"]
    linked = {"fileData": {"fileUri": "https://host/p.png?x=1", "mimeType": "image/png"}}
    assert first["parts"] == [INLINE, linked, {"fileData": {"fileUri": "https://host/p"}}]
    held = answered("c", "draw", output="chart")
    held["functionResponse"]["parts"] = [INLINE]
    assert last["parts"] == [held, linked]
    # Before Gemini 3 they follow their result.
    assert sent(asked, OLD)["contents"][2]["parts"] == [answered("c", "draw", output="chart"), INLINE, linked]


@pytest.mark.parametrize(
    ("choice", "strict", "calling"),
    [
        (ToolMode.AUTO, False, {"mode": "AUTO"}),
        (ToolMode.AUTO, True, {"mode": "VALIDATED"}),
        (ToolMode.REQUIRED, True, {"mode": "ANY"}),
        (ToolMode.NONE, False, {"mode": "NONE"}),
        ("f", False, {"mode": "ANY", "allowedFunctionNames": ["f"]}),
    ],
)
def test_tool_choices(choice: ToolMode | str, strict: bool, calling: dict[str, Any]) -> None:
    made = sent(request(user("x"), tools=[tool("f", strict=strict)], tool_choice=choice, parallel_tool_calls=False))
    assert made["toolConfig"] == {"functionCallingConfig": calling}
    assert made["tools"][0]["functionDeclarations"] == [{"name": "f", "description": "Does f."}]


def test_generation_config() -> None:
    settings = {"top_p": 0.9, "top_k": 40, "seed": 7, "stop_sequences": ["END"], "thinking": {"type": "enabled"}}
    asked = request(user("x"), temperature=0.3, max_output_tokens=100, settings=settings)
    plain = {"maxOutputTokens": 100, "stopSequences": ["END"]}
    sampled = {"temperature": 0.3, "topP": 0.9, "topK": 40, "seed": 7}
    assert sent(asked)["generationConfig"] == {**plain, **sampled}
    # What newer models ignore is not sent.
    assert sent(asked, "google_ai/gemini-4-argon")["generationConfig"] == plain
    assert "generationConfig" not in sent(request(user("x")))
    safety = [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "OFF"}]
    assert sent(request(user("x"), settings={"safety_settings": safety}))["safetySettings"] == safety
    with pytest.raises(LlmBadRequest, match="topP"):
        sent(request(user("x"), settings={"topP": 1}))


@pytest.mark.parametrize(
    ("name", "wished", "thinking"),
    [
        (
            "gemini-2.5-flash",
            {"include_thoughts": True, "thinking_budget": 0},
            {"includeThoughts": True, "thinkingBudget": 0},
        ),
        ("gemini-2.5-flash", {"thinking_level": "medium"}, {"thinkingBudget": 8_192}),
        ("gemini-2.5-flash", {"thinkingBudget": -1}, {"thinkingBudget": -1}),
        ("gemini-2.5-pro", {"thinking_budget": 0}, {"thinkingBudget": 128}),
        ("gemini-3-flash-preview", {"thinking_budget": 0}, {"thinkingLevel": "MINIMAL"}),
        ("gemini-3.8-flash", {"thinking_budget": 0}, {"thinkingLevel": "LOW"}),
        ("gemini-3.8-flash", {"thinking_budget": 4_000}, {"thinkingLevel": "MEDIUM"}),
        ("gemini-4-argon", {"thinking_budget": 100_000}, {"thinkingLevel": "HIGH"}),
        ("gemini-4-hydrogen", {"thinking_level": "xhigh", "thinking_budget": 5}, {"thinkingLevel": "XHIGH"}),
        ("gemini-4-argon", {"thinking_budget": -1}, None),
        ("gemini-4-argon", {}, None),
    ],
)
def test_thinking(name: str, wished: dict[str, Any], thinking: dict[str, Any] | None) -> None:
    made = sent(request(user("x"), settings={"thinking_config": wished}), f"google_ai/{name}")
    assert made.get("generationConfig", {}).get("thinkingConfig") == thinking


def test_log_probabilities_are_asked_of_models_that_give_them() -> None:
    asked = request(user("x"), logprobs=True, top_logprobs=3)
    assert "generationConfig" not in sent(asked)
    giving = model(NEW)
    giving = replace(giving, capabilities=replace(giving.capabilities, logprobs=True))
    assert sent(asked, giving)["generationConfig"] == {"responseLogprobs": True, "logprobs": 3}


PERSON = {"type": "object", "properties": {"name": {"type": "string", "minLength": 1}}}
FORMAT = {
    "responseMimeType": "application/json",
    "responseJsonSchema": {**PERSON, "properties": {"name": {"type": "string"}}},
}


@pytest.mark.parametrize(
    ("options", "config"),
    [
        ({"response_format": ResponseFormat(PERSON)}, FORMAT),
        ({"response_format": ResponseFormat()}, {"responseMimeType": "application/json"}),
        ({"settings": {"response_schema": {"type": "json_schema", "json_schema": {"schema": PERSON}}}}, FORMAT),
        ({"settings": {"response_schema": PERSON}}, FORMAT),
        ({"settings": {"response_schema": {"type": "json_object"}}}, {"responseMimeType": "application/json"}),
        ({"settings": {"response_schema": {"type": "text"}}}, None),
    ],
)
def test_replies_by_a_schema(options: dict[str, Any], config: dict[str, Any] | None) -> None:
    assert sent(request(user("x"), **options)).get("generationConfig") == config


def test_old_models_are_asked_in_words_for_json_beside_tools() -> None:
    asked = request(user("x"), tools=[tool("f")], response_format=ResponseFormat(PERSON))
    assert sent(asked)["generationConfig"] == FORMAT
    old = sent(asked, OLD)
    assert "generationConfig" not in old
    (instruction,) = old["systemInstruction"]["parts"]
    assert orjson.dumps(PERSON).decode() in instruction["text"]


def test_tools_with_schemas_that_google_does_not_take_as_they_are() -> None:
    schema = '{"type": "object", "properties": {"n": {"type": "integer", "exclusiveMinimum": 0, "multipleOf": 2}}}'
    made = sent(request(user("x"), tools=[ToolSpec("f", "", schema)]))
    (declared,) = made["tools"][0]["functionDeclarations"]
    assert declared["parametersJsonSchema"]["properties"] == {"n": {"type": "integer", "minimum": 1}}


def test_what_is_counted() -> None:
    asked = request(system("Be kind."), user("x"), tools=[tool("f")], max_output_tokens=5)
    body = count_body_of(asked, model(NEW), "")
    assert body.keys() == {"contents", "systemInstruction", "tools"}
    whole = count_body_of(asked, model(NEW), "models/m")
    assert whole.keys() == {"generateContentRequest"}
    assert whole["generateContentRequest"].keys() == {"model", *body}
