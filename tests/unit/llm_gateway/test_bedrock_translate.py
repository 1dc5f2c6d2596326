"""The neutral chat as Bedrock's Converse API: what each vendor's models take there."""

from dataclasses import replace
from typing import Any

import orjson
import pytest

from services.llm_gateway.core import errors
from services.llm_gateway.core.chat import (
    ChatRequest,
    Image,
    Message,
    Reasoning,
    RedactedReasoning,
    ResponseFormat,
    Role,
    Text,
    ToolMode,
    ToolResult,
)
from services.llm_gateway.core.known_models import known
from services.llm_gateway.core.models import ModelKind
from services.llm_gateway.core.tables.bedrock import base_name, foundation_id
from services.llm_gateway.vendors.anthropic.translate import REPLY_TOOL
from services.llm_gateway.vendors.bedrock.listing import listed_models
from services.llm_gateway.vendors.bedrock.signing import BedrockRoutes, endpoints, key_setting
from services.llm_gateway.vendors.bedrock.translate import body_of, count_body_of, path_of
from tests.fakes import bedrock_rules
from tests.unit.llm_gateway.builders import assistant, call, config, model, request, results, system, tool, user

HAIKU = "us.anthropic.claude-haiku-4-5-20251001-v1:0"
OPUS = "global.anthropic.claude-opus-5-5"
NOVA = "amazon.nova-lite-v1:0"
LLAMA = "meta.llama3-3-70b-instruct-v1:0"
POINT = {"cachePoint": {"type": "default"}}


def body(asked: ChatRequest, name: str = HAIKU) -> dict[str, Any]:
    """The request's body, which the fake accepts."""
    made: dict[str, Any] = orjson.loads(body_of(asked, model(f"bedrock/{name}")))
    assert bedrock_rules.complain_of_shape("Converse", name, made) is None
    assert bedrock_rules.complain(foundation_id(name), made) is None
    return made


def test_a_whole_conversation() -> None:
    thoughts = (Reasoning("hm", "sig"), RedactedReasoning("bedrock:eA=="), Reasoning("theirs", "openai:sig"))
    asked = request(
        system("Be kind."),
        user("Roll twice."),
        assistant(*thoughts, "Rolling.", call("c1", "roll", n=6), call("c2", "roll")),
        results(("c1", "4")),
        results(("c2", ""), is_error=True),
        user("And?"),
        tools=[tool("roll", n="integer")],
        max_output_tokens=500,
    )
    made = body(asked)
    assert made["system"] == [{"text": "Be kind."}, POINT]
    assert [turn["role"] for turn in made["messages"]] == ["user", "assistant", "user"]
    assert made["messages"][0]["content"] == [{"text": "Roll twice."}, POINT]
    assert made["messages"][1]["content"] == [
        {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "sig"}}},
        {"reasoningContent": {"redactedContent": "eA=="}},
        {"text": "Rolling."},
        {"toolUse": {"toolUseId": "c1", "name": "roll", "input": {"n": 6}}},
        {"toolUse": {"toolUseId": "c2", "name": "roll", "input": {}}},
    ]
    assert made["messages"][2]["content"] == [
        {"toolResult": {"toolUseId": "c1", "content": [{"text": "4"}]}},
        {"toolResult": {"toolUseId": "c2", "content": [{"text": "(no output)"}], "status": "error"}},
        {"text": "And?"},
        POINT,
    ]
    assert [next(iter(entry)) for entry in made["toolConfig"]["tools"]] == ["toolSpec", "cachePoint"]
    assert made["inferenceConfig"] == {"maxTokens": 500}


def test_what_others_than_claude_take() -> None:
    asked = request(system("Be kind."), user("x"), tools=[tool("f")], temperature=0.5)
    nova = body(asked, NOVA)
    assert nova["system"][-1] == POINT
    assert nova["toolConfig"]["tools"] == [{"toolSpec": nova["toolConfig"]["tools"][0]["toolSpec"]}]
    assert nova["inferenceConfig"] == {"temperature": 0.5}
    assert "cachePoint" not in orjson.dumps(body(asked, LLAMA)).decode()


def test_pictures_go_by_value_alone() -> None:
    drawn = Message(Role.TOOL, [ToolResult("c", [Text("chart"), Image("iVBORw==", media_type="image/png")])])
    made = body(request(user("Draw."), assistant(call("c", "draw")), drawn, tools=[tool("draw")]))
    picture = {"image": {"format": "png", "source": {"bytes": "iVBORw=="}}}
    assert made["messages"][2]["content"][0]["toolResult"]["content"] == [{"text": "chart"}, picture]
    with pytest.raises(errors.LlmBadRequest, match="by value alone"):
        body(request(user(Image(url="https://host/p.png"))))
    with pytest.raises(errors.LlmBadRequest, match="gif, jpeg, png, webp"):
        body(request(user(Image("eA==", media_type="image/tiff"))))


@pytest.mark.parametrize(
    ("name", "choice", "sent", "said"),
    [
        (HAIKU, ToolMode.AUTO, None, ""),
        (HAIKU, ToolMode.REQUIRED, {"any": {}}, ""),
        (HAIKU, "g", {"tool": {"name": "g"}}, ""),
        (NOVA, "g", {"tool": {"name": "g"}}, ""),
        (OPUS, ToolMode.REQUIRED, None, "with a call of a tool"),
        (OPUS, "g", None, "the tool g"),
        (LLAMA, "g", None, "the tool g"),
    ],
)
def test_tool_choices(name: str, choice: ToolMode | str, sent: Any, said: str) -> None:
    made = body(request(user("x"), tools=[tool("f"), tool("g")], tool_choice=choice), name)
    assert made["toolConfig"].get("toolChoice") == sent
    assert said in made["messages"][-1]["content"][-1].get("text", "")


def test_calls_that_may_not_be_made() -> None:
    # Without calls in the history no tool is offered at all.
    made = body(request(user("x"), tools=[tool("f")], tool_choice=ToolMode.NONE))
    assert "toolConfig" not in made
    # With them the wire demands some: the model is told not to call.
    history = (user("x"), assistant(call("c", "f")), results(("c", "1")))
    made = body(request(*history, tools=[tool("f", n="integer"), tool("g")], tool_choice=ToolMode.NONE))
    (spec, _) = made["toolConfig"]["tools"]
    assert spec["toolSpec"]["inputSchema"]["json"]["properties"] == {"n": {"type": "integer"}}
    assert "may not be called" in made["messages"][-1]["content"][-1]["text"]
    # The same where the caller knows the tools no more.
    assert body(request(*history))["toolConfig"]["tools"][0]["toolSpec"]["name"] == "f"


SCHEMA = {"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]}


def test_replies_of_a_schema() -> None:
    wanted = ResponseFormat(SCHEMA, "person")
    native = body(request(user("x"), response_format=wanted))["outputConfig"]["textFormat"]
    assert native["type"] == "json_schema"
    assert native["structure"]["jsonSchema"]["name"] == "person"
    assert orjson.loads(native["structure"]["jsonSchema"]["schema"]) == {**SCHEMA, "additionalProperties": False}
    by_call = body(request(user("x"), response_format=wanted), NOVA)
    assert by_call["toolConfig"]["toolChoice"] == {"tool": {"name": REPLY_TOOL}}
    both = body(request(user("x"), response_format=wanted, tools=[tool("f")]), NOVA)
    assert both["toolConfig"]["toolChoice"] == {"any": {}}
    for name in (OPUS, LLAMA):
        in_words = body(request(user("x"), response_format=wanted), name)
        assert "toolConfig" not in in_words
        assert "JSON Schema" in in_words["messages"][-1]["content"][-1]["text"]


def test_strict_tools() -> None:
    strict = tool("f", strict=True, n="integer")
    spec = body(request(user("x"), tools=[strict]))["toolConfig"]["tools"][0]["toolSpec"]
    assert (spec["strict"], spec["inputSchema"]["json"]["additionalProperties"]) == (True, False)
    assert "strict" not in body(request(user("x"), tools=[strict]), OPUS)["toolConfig"]["tools"][0]["toolSpec"]


def test_settings() -> None:
    thinking = {"type": "enabled", "budget_tokens": 2_000}
    settings = {"thinking": thinking, "effort": "low", "stop_sequences": ["END"], "service_tier": "flex"}
    made = body(request(user("x"), settings=settings, max_output_tokens=100))
    assert made["additionalModelRequestFields"] == {"thinking": thinking}
    assert made["outputConfig"] == {"effort": "low"}
    assert made["inferenceConfig"] == {"maxTokens": 3_024, "stopSequences": ["END"]}
    assert made["serviceTier"] == {"type": "flex"}
    more = body(request(user("x"), settings=settings), OPUS)["additionalModelRequestFields"]
    assert more["thinking"]["block_binding"] == {"prefix_mismatch_behavior": "drop_block"}
    assert more["anthropic_beta"] == ["thinking-binding-controls-2026-08-01"]
    effort = request(user("x"), settings={"effort": "low", "service_tier": "auto"})
    assert body(effort, "openai.gpt-oss-120b-1:0")["additionalModelRequestFields"] == {"reasoning_effort": "low"}
    assert body(effort, "us.amazon.nova-2-lite-v1:0")["additionalModelRequestFields"] == {
        "reasoningConfig": {"type": "enabled", "maxReasoningEffort": "low"}
    }
    assert body(effort, LLAMA).keys() == {"messages"}


def test_an_applications_own_profile_is_known_by_its_model() -> None:
    profile = replace(model("bedrock/a1b2c3d4e5f6"), base_model="claude-haiku-4-5")
    made = orjson.loads(body_of(request(system("Be kind."), user("x")), profile))
    assert made["system"][-1] == POINT


def test_counting_counts_what_is_sent() -> None:
    asked = request(system("Be kind."), user("x"), tools=[tool("f")], settings={"effort": "low"})
    counted = orjson.loads(count_body_of(asked, model(f"bedrock/{HAIKU}")))
    assert bedrock_rules.complain_of_shape("CountTokens", "m", counted) is None
    assert counted["input"]["converse"].keys() == {"messages", "system", "toolConfig"}


@pytest.mark.parametrize(
    ("name", "base"),
    [
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5"),
        ("anthropic.claude-opus-4-6-v1", "claude-opus-4-6"),
        ("global.anthropic.claude-opus-5-5", "claude-opus-5-5"),
        ("us-gov.anthropic.claude-3-7-sonnet-20250219-v1:0", "claude-3-7-sonnet"),
        ("arn:aws:bedrock:us-east-1:123456789012:inference-profile/eu.amazon.nova-2-lite-v1:0", "nova-2-lite"),
        ("openai.gpt-oss-120b-1:0", "gpt-oss-120b"),
        ("amazon.titan-embed-text-v2:0", "titan-embed-text-v2"),
    ],
)
def test_bedrock_inference_profiles_resolve_to_their_vendors_model_name(name: str, base: str) -> None:
    assert base_name(name) == base


def test_bedrock_inference_profiles_have_the_windows_of_anthropics_table() -> None:
    foundations: list[dict[str, Any]] = [
        {"modelId": "anthropic.claude-sonnet-4-5-20250929-v1:0", "inferenceTypesSupported": ["INFERENCE_PROFILE"]}
        | {"inputModalities": ["TEXT", "IMAGE"], "outputModalities": ["TEXT"], "responseStreamingSupported": True},
        {"modelId": "amazon.titan-embed-text-v2:0", "outputModalities": ["EMBEDDING"]},
        {"modelId": "amazon.nova-canvas-v1:0", "outputModalities": ["IMAGE"]},
    ]
    arn = "arn:aws:bedrock:us-east-1::foundation-model/anthropic.claude-sonnet-4-5-20250929-v1:0"
    profiles: list[dict[str, Any]] = [
        {"inferenceProfileId": "us.anthropic.claude-sonnet-4-5-20250929-v1:0", "models": [{"modelArn": arn}]},
        {"inferenceProfileId": "a1b2c3d4e5f6", "inferenceProfileName": "Team A", "models": [{"modelArn": arn}]},
    ]
    titan, canvas, region, own = listed_models(foundations, profiles)
    assert (titan.kind, canvas.kind) == (ModelKind.EMBEDDING, ModelKind.OTHER)
    for listed in (region, own):
        assert (listed.kind, listed.base_model) == (ModelKind.CHAT, "claude-sonnet-4-5")
        assert listed.capabilities == {"vision": True, "streaming": True}
        row = known("bedrock", listed.name, listed.base_model)
        assert row is not None
        assert row.context_window == 200_000
    assert own.display_name == "Team A"


def test_paths() -> None:
    assert path_of("us.amazon.nova-lite-v1:0", "converse") == "/model/us.amazon.nova-lite-v1:0/converse"
    arn = "arn:aws:bedrock:us-east-1:1:inference-profile/x"
    assert path_of(arn, "invoke") == "/model/arn:aws:bedrock:us-east-1:1:inference-profile%2Fx/invoke"


async def test_endpoints_and_keys() -> None:
    own = config("bedrock", region="eu-central-1", access_key="AK")
    runtime, control = endpoints(own)
    assert runtime == "https://bedrock-runtime.eu-central-1.amazonaws.com"
    assert control == "https://bedrock.eu-central-1.amazonaws.com"
    private = config("bedrock", "https://vpce-1.bedrock-runtime.eu.vpce.amazonaws.com", region="eu-central-1")
    assert endpoints(private)[1] == private.base_url
    assert endpoints(replace(private, options={"control_url": "http://c/"}))[1] == "http://c"
    with pytest.raises(errors.ProviderInvalid, match="AWS_REGION"):
        endpoints(config("bedrock"))
    signed = await BedrockRoutes(own).find("GET", "/foundation-models", b"")
    assert str(signed.url).startswith(control)
    assert signed.headers["authorization"].startswith("AWS4-HMAC-SHA256 Credential=AK/")
    assert key_setting(replace(own, key_setting="AWS_BEARER_TOKEN_BEDROCK")).endswith("AWS_SECRET_ACCESS_KEY")
    # A key of Bedrock's own may stand in the environment beside an account's.
    for key, access in (("sk", ""), ("ABSKsecret", "AK")):
        bearer = await BedrockRoutes(replace(own, api_key=key, access_key=access)).find(
            "POST", "/model/m/converse", b"{}"
        )
        assert bearer.headers["authorization"] == f"Bearer {key}"
