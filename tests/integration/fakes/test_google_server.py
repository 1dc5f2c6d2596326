"""The fake Google AI and Vertex, seen through the vendor's own SDK."""

from collections.abc import AsyncIterator
from typing import Any

import orjson
import pytest
from google import genai
from google.genai import errors, types
from google.oauth2 import service_account

from tests.fakes.google_server import GoogleServer, VertexServer
from tests.fakes.google_tokens import PROJECT
from tests.fakes.script import Reply, ToolCall, Usage, by_step

MODEL = "gemini-3-flash-preview"
DICE = types.Tool(
    function_declarations=[
        types.FunctionDeclaration(
            name="roll_dice",
            description="Roll.",
            parameters_json_schema={"type": "object", "properties": {"n": {"type": "integer"}}},
        )
    ]
)
# The SDK makes its client of aiohttp's in a way that aiohttp would rather not have.
pytestmark = pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession:DeprecationWarning")
ONCE = types.HttpRetryOptions(attempts=1)


@pytest.fixture
async def fake() -> AsyncIterator[GoogleServer]:
    async with GoogleServer().running() as server:
        yield server


@pytest.fixture
async def client(fake: GoogleServer) -> AsyncIterator[Any]:
    options = types.HttpOptions(base_url=fake.base_url, api_version="v1beta", retry_options=ONCE, timeout=30_000)
    with genai.Client(api_key="sk-test", http_options=options) as sdk:
        async with sdk.aio as aio:
            yield aio.models


def config(**fields: Any) -> types.GenerateContentConfig:
    off = types.AutomaticFunctionCallingConfig(disable=True)
    return types.GenerateContentConfig(automatic_function_calling=off, **fields)


async def create(models: Any, contents: Any = "hello", **fields: Any) -> types.GenerateContentResponse:
    reply: types.GenerateContentResponse = await models.generate_content(
        model=MODEL, contents=contents, config=config(**fields)
    )
    return reply


async def streamed(models: Any, **fields: Any) -> list[types.GenerateContentResponse]:
    stream = await models.generate_content_stream(model=MODEL, contents="hello", config=config(**fields))
    return [chunk async for chunk in stream]


async def test_a_whole_reply(fake: GoogleServer, client: Any) -> None:
    fake.reply(Reply(text="Hi there", reasoning="hm", usage=Usage(10, 5, cached=4, reasoning=3)))
    answer = await create(client)
    assert answer.text == "Hi there"
    assert answer.parts is not None
    thought, text = answer.parts
    assert (thought.thought, thought.text) == (True, "hm")
    assert text.thought_signature
    usage = answer.usage_metadata
    assert usage is not None
    assert (usage.prompt_token_count, usage.cached_content_token_count) == (10, 4)
    assert (usage.candidates_token_count, usage.thoughts_token_count) == (2, 3)
    assert answer.candidates is not None
    assert answer.candidates[0].finish_reason is types.FinishReason.STOP
    assert (answer.model_version, answer.response_id) == (MODEL, "resp-fake1")


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
async def test_a_stream(fake: GoogleServer, client: Any, line_end: str) -> None:
    calls = [ToolCall("roll_dice", {"n": 6}), ToolCall("roll_dice", {"n": 8})]
    fake.reply(Reply(text="one two", reasoning="I think", calls=calls, line_end=line_end))
    chunks = await streamed(client, tools=[DICE])
    parts = [part for chunk in chunks for part in chunk.parts or ()]
    assert "".join(part.text or "" for part in parts if part.thought) == "I think"
    assert "".join(part.text or "" for part in parts if not part.thought) == "one two"
    called = [part for part in parts if part.function_call]
    assert [part.function_call.args for part in called if part.function_call] == [{"n": 6}, {"n": 8}]
    assert [bool(part.thought_signature) for part in called] == [True, False]


async def test_the_sdk_goes_on_where_a_reply_is_continued(fake: GoogleServer, client: Any) -> None:
    fake.reply(Reply(text="one ", finish="CONTINUATION"), Reply(text="two"))
    assert (await create(client)).text == "one two"
    assert [body.get("continuationToken", "") for body in fake.bodies()] == ["", "dG9rZW4tMQ=="]


@pytest.mark.parametrize(
    ("kind", "error_class", "code", "status"),
    [
        ("authentication", errors.ClientError, 400, "INVALID_ARGUMENT"),
        ("rate_limit", errors.ClientError, 429, "RESOURCE_EXHAUSTED"),
        ("model_not_found", errors.ClientError, 404, "NOT_FOUND"),
        ("server", errors.ServerError, 500, "INTERNAL"),
        ("overloaded", errors.ServerError, 503, "UNAVAILABLE"),
    ],
)
async def test_errors(
    fake: GoogleServer, client: Any, kind: Any, error_class: type[errors.APIError], code: int, status: str
) -> None:
    fake.reply(*[Reply(error=kind, retry_after=2)] * 2)
    for ask in (create, streamed):
        with pytest.raises(error_class) as caught:
            await ask(client)
        assert (caught.value.code, caught.value.status) == (code, status)


async def test_what_the_vendor_refuses(client: Any) -> None:
    async def refused(contents: Any, **fields: Any) -> str:
        with pytest.raises(errors.ClientError) as caught:
            await create(client, contents, **fields)
        return str(caught.value)

    def said(role: str, *parts: dict[str, Any]) -> dict[str, Any]:
        return {"role": role, "parts": list(parts)}

    hello = said("user", {"text": "hello"})
    call = {"function_call": {"id": "c1", "name": "f", "args": {}}}
    signed = {**call, "thought_signature": b"abc"}
    result = {"function_response": {"id": "c1", "name": "f", "response": {"output": "1"}}}
    assert "missing a `thought_signature`" in await refused([hello, said("model", call), said("user", result)])
    assert "number of function response parts" in await refused([hello, said("model", signed), hello])
    assert "number of function response parts" in await refused([hello, said("user", result)])
    assert "immediately after a user turn" in await refused([said("model", signed), said("user", result)])
    assert "valid role" in await refused([said("tool", {"text": "x"})])
    both = types.ThinkingConfig(thinking_budget=5, thinking_level=types.ThinkingLevel.LOW)
    assert "only one of thinking" in await refused("x", thinking_config=both)
    answer = await create(client, [hello, said("model", signed), said("user", result)])
    assert answer.text


async def test_lists_counts_and_vectors(fake: GoogleServer, client: Any) -> None:
    listed = [one async for one in await client.list(config={"page_size": 2})]
    assert [one.name for one in listed][: len(fake.chat_models)] == [f"models/{name}" for name in fake.chat_models]
    assert listed[0].input_token_limit == 1_048_576
    assert listed[0].supported_actions == ["generateContent", "countTokens"]
    assert (await client.count_tokens(model=MODEL, contents="hello")).total_tokens > 0
    asked = {"output_dimensionality": 16}
    embedded = await client.embed_content(model="gemini-embedding-001", contents=["a", "b"], config=asked)
    assert [len(one.values) for one in embedded.embeddings] == [16, 16]


async def test_rules_by_step(fake: GoogleServer, client: Any) -> None:
    fake.rules(*by_step(Reply(calls=[ToolCall("roll_dice", id="c1")], reasoning="hm"), Reply(text="done")))
    first = await create(client, tools=[DICE])
    assert first.candidates is not None
    answer = types.Part(function_response=types.FunctionResponse(id="c1", name="roll_dice", response={"output": 4}))
    history = ["hello", first.candidates[0].content, types.Content(role="user", parts=[answer])]
    assert (await create(client, history, tools=[DICE])).text == "done"


async def test_vertex() -> None:
    async with VertexServer().running() as fake:
        info, scopes = orjson.loads(fake.tokens.account()), ["https://www.googleapis.com/auth/cloud-platform"]
        made: Any = service_account.Credentials
        credentials = made.from_service_account_info(info, scopes=scopes)
        options = types.HttpOptions(base_url=fake.base_url, retry_options=ONCE, timeout=30_000)
        with genai.Client(
            vertexai=True, project=PROJECT, location="europe-west1", credentials=credentials, http_options=options
        ) as sdk:
            async with sdk.aio as aio:
                fake.reply(Reply(text="Hi"), Reply(text="one two"))
                assert (await create(aio.models)).text == "Hi"
                chunks = await streamed(aio.models)
                assert "".join(chunk.text or "" for chunk in chunks) == "one two"
                listed = [one.name async for one in await aio.models.list(config={"query_base": True})]
                assert f"publishers/google/models/{MODEL}" in listed
                assert (await aio.models.count_tokens(model=MODEL, contents="hello")).total_tokens
                for name, length in (("gemini-embedding-001", 3_072), ("text-embedding-005", 768)):
                    models: Any = aio.models
                    embedded = await models.embed_content(model=name, contents=["a", "b"])
                    assert [len(one.values or ()) for one in embedded.embeddings or ()] == [length, length]
        assert fake.tokens.given == ["ya29.fake-1"]
