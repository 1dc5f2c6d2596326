"""The fake Responses, seen through the vendor's own SDK, over HTTP and over a WebSocket."""

from collections.abc import AsyncIterator
from typing import Any

import openai
import pytest
from openai import AsyncOpenAI
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseReasoningItem

from tests.fakes.responses_server import ResponsesServer
from tests.fakes.script import Reply, ToolCall, Usage

HELLO: Any = [{"role": "user", "content": "hello"}]
DICE: Any = {
    "type": "function",
    "name": "roll_dice",
    "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
    "strict": False,
}
FULL = Reply(
    text="one two",
    reasoning="first\n\nsecond",
    redacted="opaque",
    calls=[ToolCall("roll_dice", {"n": 6})],
    usage=Usage(10, 5, cached=4, reasoning=3),
)


@pytest.fixture
async def fake() -> AsyncIterator[ResponsesServer]:
    async with ResponsesServer().running() as server:
        yield server


@pytest.fixture
async def client(fake: ResponsesServer) -> AsyncIterator[AsyncOpenAI]:
    async with AsyncOpenAI(base_url=fake.base_url, api_key="sk-test", max_retries=0, timeout=30) as sdk:
        yield sdk


async def test_a_whole_response(fake: ResponsesServer, client: AsyncOpenAI) -> None:
    fake.reply(FULL)
    made = await client.responses.create(
        model="gpt-5", input="hello", tools=[DICE], store=False, include=["reasoning.encrypted_content"]
    )
    thought, hidden, message, call = made.output
    assert isinstance(thought, ResponseReasoningItem)
    assert isinstance(hidden, ResponseReasoningItem)
    assert isinstance(message, ResponseOutputMessage)
    assert isinstance(call, ResponseFunctionToolCall)
    assert [part.text for part in thought.summary] == ["first", "second"]
    assert (thought.encrypted_content, hidden.encrypted_content) == ("sig-of-the-fake", "opaque")
    assert made.output_text == "one two"
    assert (call.name, call.arguments) == ("roll_dice", '{"n":6}')
    assert made.status == "completed"
    assert made.usage is not None
    assert made.usage.input_tokens_details.cached_tokens == 4
    assert made.usage.output_tokens_details.reasoning_tokens == 3


async def test_a_streamed_response_is_the_same(fake: ResponsesServer, client: AsyncOpenAI) -> None:
    fake.reply(FULL)
    async with client.responses.stream(model="gpt-5", input="hello", tools=[DICE], store=False) as stream:
        kinds = [event.type async for event in stream]
        final = await stream.get_final_response()
    assert kinds[:3] == ["response.created", "response.in_progress", "response.output_item.added"]
    assert kinds[-1] == "response.completed"
    assert {"response.reasoning_summary_text.delta", "response.function_call_arguments.delta"} <= set(kinds)
    assert final.output_text == "one two"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"model": "gpt-5", "temperature": 0.3}, "temperature"),
        ({"model": "gpt-4o", "reasoning": {"effort": "low"}}, "reasoning.effort"),
        ({"model": "gpt-5", "max_output_tokens": 3}, "max_output_tokens"),
        ({"model": "gpt-5", "prompt_cache_key": "k" * 65}, "prompt_cache_key"),
        ({"model": "o3", "parallel_tool_calls": False}, "parallel_tool_calls"),
        ({"model": "gpt-5", "messages": []}, "Unknown parameter"),
        ({"model": "gpt-5", "tools": [{**DICE, "strict": True}]}, "Invalid schema"),
        ({"model": "gpt-5", "previous_response_id": "resp_x"}, "not found"),
        (
            {
                "model": "gpt-5",
                "input": [*HELLO, {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"}],
            },
            "No tool output found for function call a",
        ),
        (
            {"model": "gpt-5", "input": [*HELLO, {"type": "function_call_output", "call_id": "a", "output": "4"}]},
            "No tool call found",
        ),
        (
            {"model": "gpt-5", "input": [{"type": "reasoning", "id": "rs_1", "summary": []}, *HELLO]},
            "Items are not persisted",
        ),
        (
            {"model": "gpt-5", "input": [{"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"}]},
            "required following item",
        ),
        (
            {
                "model": "gpt-5",
                "input": [
                    {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "foreign-x"},
                    {"role": "assistant", "content": "so"},
                ],
            },
            "could not be verified",
        ),
    ],
)
async def test_what_the_vendor_refuses(
    fake: ResponsesServer, client: AsyncOpenAI, body: dict[str, Any], message: str
) -> None:
    with pytest.raises(openai.BadRequestError, match=message):
        await client.post("/responses", cast_to=object, body={"input": HELLO, **body})


async def test_without_a_key(fake: ResponsesServer) -> None:
    async with AsyncOpenAI(
        base_url=fake.base_url, api_key="k", max_retries=0, default_headers={"authorization": "no"}
    ) as c:
        with pytest.raises(openai.AuthenticationError):
            await c.responses.create(model="gpt-5", input="hello")


async def test_input_tokens_are_counted(fake: ResponsesServer, client: AsyncOpenAI) -> None:
    few = await client.responses.input_tokens.count(model="gpt-5", input="hello")
    more = await client.responses.input_tokens.count(model="gpt-5", input="hello " * 100)
    assert 0 < few.input_tokens < more.input_tokens


async def test_a_websocket_by_the_vendors_sdk(fake: ResponsesServer, client: AsyncOpenAI) -> None:
    fake.reply(Reply(calls=[ToolCall("roll_dice", {"n": 6}, id="call_1")]), Reply(text="It is four."))
    output: Any = {"type": "function_call_output", "call_id": "call_1", "output": "4"}
    async with client.responses.connect() as connection:
        await connection.response.create(model="gpt-5", input="roll", tools=[DICE], store=False)
        first = await _completed(connection)
        await connection.response.create(model="gpt-5", input=[output], previous_response_id=first.id, store=False)
        second = await _completed(connection)
        assert second.output_text == "It is four."
        await connection.response.create(model="gpt-5", input="go on", previous_response_id=first.id, store=False)
        event: Any = await connection.recv()
        assert (event.type, event.status, event.error.code) == ("error", 400, "previous_response_not_found")
    assert fake.opened == 1


async def test_a_websocket_ends_after_its_time(fake: ResponsesServer, client: AsyncOpenAI) -> None:
    fake.lifetime = 1
    async with client.responses.connect() as connection:
        await connection.response.create(model="gpt-5", input="hello")
        await _completed(connection)
        await connection.response.create(model="gpt-5", input="hello")
        event: Any = await connection.recv()
        assert event.error.code == "websocket_connection_limit_reached"


async def _completed(connection: Any) -> Any:
    async for event in connection:
        if event.type == "response.completed":
            return event.response
    raise AssertionError("the connection ended before the response")
