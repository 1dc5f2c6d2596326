"""What strangers' servers, tools and pictures are like, end to end through the gateway's calls, over HTTP."""

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import orjson
import pytest

from loci.llm.v1 import chat_pb2, chat_service_pb2
from services.llm_gateway.calls.convert import chat_request, generation_message
from services.llm_gateway.core.chat import Generation, Reasoning, Text, ToolCall, ToolSpec
from services.llm_gateway.core.errors import LlmStreamIncomplete
from services.llm_gateway.vendors.anthropic.client import AnthropicProvider
from services.llm_gateway.vendors.openai.client import OpenAIProvider
from tests.fakes.anthropic_server import AnthropicServer
from tests.fakes.openai_server import OpenAIServer
from tests.fakes.script import Reply, Rule
from tests.fakes.script import ToolCall as ScriptedCall
from tests.unit.llm_gateway.builders import config, request, user
from tests.unit.llm_gateway.builders import tool as spec
from tests.unit.llm_gateway.test_calls import ANN, World

CLAUDE, COMPATIBLE = "anthropic/claude-haiku-4-5", "openai/gpt-4o"
EITHER = {
    "type": "object",
    "properties": {"filter[id]": {"type": "string"}, "name": {"type": "string"}},
    "anyOf": [{"required": ["filter[id]"]}, {"required": ["name"]}],
}


@asynccontextmanager
async def claude() -> AsyncGenerator[tuple[World, AnthropicServer], None]:
    async with AnthropicServer().running() as fake:
        provider = AnthropicProvider(config("anthropic", fake.base_url, api_key="k"))
        try:
            yield World(anthropic=provider), fake  # type: ignore[arg-type]
        finally:
            await provider.close()


@asynccontextmanager
async def compatible() -> AsyncGenerator[tuple[World, OpenAIServer], None]:
    async with OpenAIServer().running() as fake:
        provider = OpenAIProvider(config("openai", fake.base_url, api_key="k", is_vendor=False))
        try:
            yield World(openai=provider), fake  # type: ignore[arg-type]
        finally:
            await provider.close()


async def reply_to(events: Sequence[Any], *, done: bool = True) -> Generation:
    """The reply that a compatible server streams with these deltas."""
    chunks = [{"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in events]
    frames = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks] + (["data: [DONE]\n\n"] if done else [])
    async with compatible() as (world, fake):
        fake.reply(*[Reply(raw_body="".join(frames), content_type="text/event-stream")] * 2)
        asked = request(user("x"), handle=COMPATIBLE, tools=[spec("get_city", x="integer")])
        *_, last = await world.stream(asked)
        generation: Generation = last.generation  # type: ignore[union-attr]
        return generation


async def test_a_late_name_is_one_call() -> None:
    late = {"tool_calls": [{"index": 0, "function": {"name": "get_city", "arguments": {"x": 1}}}]}
    made = await reply_to([{"tool_calls": [{"index": 0, "id": "a", "function": {"arguments": ""}}]}, late])
    assert list(made.message.parts) == [ToolCall("a", "get_city", '{"x":1}')]


async def test_done_is_an_end_and_silence_is_none() -> None:
    made = await reply_to([{"content": "Hi"}])
    assert list(made.message.parts) == [Text("Hi")]
    with pytest.raises(LlmStreamIncomplete):
        await reply_to([{"content": "Hi"}], done=False)


async def test_half_an_emoji_in_each_chunk() -> None:
    made = await reply_to([{"content": "Hi \ud83d"}, {"content": "\ude00"}])
    assert list(made.message.parts) == [Text("Hi \U0001f600")]
    assert generation_message(made).message.parts[0].text.text == "Hi \U0001f600"
    lonely = await reply_to([{"content": "Hi \ud83d"}])
    assert list(lonely.message.parts) == [Text("Hi \ufffd")]


async def test_thoughts_in_the_text() -> None:
    made = await reply_to([{"content": piece} for piece in ("add</th", "ink>\n", "\n42")])
    assert list(made.message.parts) == [Reasoning("add"), Text("42")]


@pytest.mark.parametrize("stream", [False, True])
async def test_no_tool_closes_an_agent(stream: bool) -> None:
    tools = [
        ToolSpec("find", "Finds.", orjson.dumps(EITHER).decode()),
        ToolSpec("broken", "Is none.", '{"type": "object", "properties": {"a": {"$ref": "#/definitions/b"}}}'),
        spec("good", x="integer"),
    ]
    async with claude() as (world, fake):
        fake.reply(Reply(calls=[ScriptedCall("find", {"filter_id": "7"})]))
        asked = request(user("x"), handle=CLAUDE, tools=tools)
        made = (await world.stream(asked))[-1].generation if stream else await world.calls.generate(asked, ANN, None)  # type: ignore[union-attr]
        assert [tool["name"] for tool in fake.bodies()[-1]["tools"]] == ["find", "good"]
    (call,) = made.message.parts
    assert isinstance(call, ToolCall)
    assert json.loads(call.arguments_json) == {"filter[id]": "7"}
    (problem,) = generation_message(made).tool_problems
    assert (problem.name, problem.problem) == (
        "broken",
        "its schema refers to #/definitions/b, which it does not define",
    )


async def test_a_tool_that_its_vendor_refuses_is_left_out_from_then_on() -> None:
    asked = request(user("x"), handle=CLAUDE, tools=[spec("first"), spec("second", x="integer")])
    refused = "tools.1.custom.input_schema: JSON schema is invalid, as only the vendor knows."
    async with claude() as (world, fake):
        fake.reply(Reply(error="bad_request", message=refused), Reply(text="Hi"), Reply(text="again"))
        made = await world.calls.generate(asked, ANN, None)
        again = await world.calls.generate(asked, ANN, None)
        sent = [[tool["name"] for tool in body["tools"]] for body in fake.bodies()]
    assert sent == [["first", "second"], ["first"], ["first"]]
    assert list(made.message.parts) == [Text("Hi")]
    assert [name for name, _ in again.tool_problems] == ["second"]


@pytest.mark.parametrize(
    "image",
    [
        {"data_base64": "/9j/4AAQ", "media_type": "image/jpg"},
        {"data_base64": "/9j/4AAQ", "media_type": "image/png"},
        {"data_base64": "/9j/4AAQ"},
        {"url": "data:image/jpg;base64,/9j/4AAQ"},
    ],
)
async def test_the_bytes_say_what_a_picture_is(image: Mapping[str, Any]) -> None:
    parts = [chat_pb2.ChatPart(image=chat_pb2.ImagePart(**image))]
    message = chat_pb2.ChatMessage(role=chat_pb2.CHAT_ROLE_USER, parts=parts)
    asked = chat_request(chat_service_pb2.GenerationRequest(handle=CLAUDE, messages=[message]))
    async with claude() as (world, fake):
        fake.reply(Reply(text="A cat."))
        made = await world.calls.generate(asked, ANN, None)
        (block,) = fake.bodies()[-1]["messages"][0]["content"]
    assert block["source"] == {"type": "base64", "media_type": "image/jpeg", "data": "/9j/4AAQ"}
    assert list(made.message.parts) == [Text("A cat.")]


@pytest.mark.parametrize("form", ["no index", "one index", "base64"])
async def test_embeddings_of_other_servers(form: str) -> None:
    vectors = {"no index": [1.0], "one index": [1.0], "base64": "AACAPw=="}
    item = {"embedding": vectors[form]} | ({"index": 0} if form == "one index" else {})
    async with compatible() as (world, fake):
        reply = Reply(raw_body=json.dumps({"data": [item, item]}), content_type="application/json")
        fake.rules(Rule(reply, route="embeddings"))
        _, embeddings, _ = await world.calls.embed("openai/small", ["a", "b"], ANN, None)
    assert [list(vector) for vector in embeddings.vectors] == [[1.0], [1.0]]
