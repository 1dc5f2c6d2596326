"""Chats over gRPC: replies, streams, leaving, failures with their statuses, retries, the account, spans."""

from __future__ import annotations

import asyncio
import time
from typing import Any
from uuid import UUID

import grpc
import orjson
import pytest
from google.protobuf.duration_pb2 import Duration
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from loci.llm.v1 import chat_pb2
from loci.llm.v1.chat_service_pb2 import CountTokensRequest, GenerateRequest, PreviewGenerationRequest
from loci.llm.v1.chat_service_pb2_grpc import ChatServiceStub
from services.common.context import CallContext, use_context
from services.common.errors import from_rpc
from services.common.settings import Env
from services.llm_gateway.settings import CallSettings
from tests.fakes.anthropic_server import AnthropicServer
from tests.fakes.openai_server import OpenAIServer
from tests.fakes.script import Reply, ToolCall, Usage
from tests.integration.llm_gateway.harness import SIGNER, Gateway, generation
from tests.polling import until

OPENAI, ANTHROPIC, DEMO = "openai/gpt-4o-mini", "anthropic/claude-haiku-4-5", "loci/demo"
USER = chat_pb2.CHAT_ROLE_USER
DICE = chat_pb2.ToolSpec(name="roll_dice", description="Roll.", parameters_json='{"type":"object","properties":{}}')


def fake_of(handle: str, openai: OpenAIServer, anthropic: AnthropicServer) -> OpenAIServer | AnthropicServer:
    return openai if handle.startswith("openai") else anthropic


@pytest.mark.parametrize("handle", [OPENAI, ANTHROPIC])
async def test_a_reply_and_its_stream(
    gateway: Gateway, handle: str, openai_fake: OpenAIServer, anthropic_fake: AnthropicServer
) -> None:
    fake = fake_of(handle, openai_fake, anthropic_fake)
    fake.reply(*[Reply(text="Let me roll.", calls=[ToolCall("roll_dice", {"n": 6}, id="call_1")])] * 2)
    whole = await gateway.generate(handle, tools=[DICE])
    assert [part.WhichOneof("part") for part in whole.message.parts] == ["text", "tool_call"]
    assert whole.message.parts[1].tool_call.arguments_json == '{"n":6}'
    assert whole.finish_reason == chat_pb2.FINISH_REASON_TOOL_CALLS
    events = [event async for event in gateway.stream(handle, tools=[DICE])]
    assert [event.sequence for event in events] == list(range(1, len(events) + 1))
    assert events[-1].completed.message == whole.message
    text = "".join(event.text_delta.text for event in events)
    assert text == "Let me roll."
    calls = [event.tool_call_delta for event in events if event.WhichOneof("event") == "tool_call_delta"]
    assert "".join(call.arguments_delta for call in calls) == '{"n":6}'
    assert {(call.id, call.name, call.index) for call in calls} == {("call_1", "roll_dice", 1)}


@pytest.mark.parametrize("handle", [OPENAI, ANTHROPIC, DEMO])
async def test_a_preview_asks_and_accounts_nothing(
    gateway: Gateway, handle: str, openai_fake: OpenAIServer, anthropic_fake: AnthropicServer
) -> None:
    before = len(openai_fake.requests) + len(anthropic_fake.requests)
    asked = PreviewGenerationRequest(request=generation(handle, "hello there", tools=[DICE]), stream=True)
    body = orjson.loads((await gateway.chat.PreviewGeneration(asked)).body_json)
    assert "hello there" in str(body["messages"])
    assert body["model"] == handle.partition("/")[2]
    assert len(openai_fake.requests) + len(anthropic_fake.requests) == before
    assert await gateway.usage() == []
    with pytest.raises(grpc.RpcError) as caught:
        await gateway.chat.PreviewGeneration(PreviewGenerationRequest(request=generation("nobody/at-all")))
    assert from_rpc(caught.value).reason == "MODEL_NOT_FOUND"


async def test_deltas_come_as_they_are_made_and_few(gateway: Gateway, openai_fake: OpenAIServer) -> None:
    # As they are made: its end never comes.
    openai_fake.reply(Reply(text="word " * 100, stall_after=3), Reply(text="word " * 100, delta_delay=0.005))
    endless = gateway.stream(OPENAI)
    assert (await endless.read()).text_delta.text.startswith("word ")
    assert openai_fake.requests[-1].outcome == "open"
    endless.cancel()
    started = time.monotonic()
    texts = [event.text_delta.text async for event in gateway.stream(OPENAI)][:-1]
    assert "".join(texts) == "word " * 100
    # At most one in each interval, however long all of it took.
    assert 1 < len(texts) <= (time.monotonic() - started) / CallSettings.read(Env({})).flush_seconds + 2


@pytest.mark.parametrize("handle", [OPENAI, ANTHROPIC])
@pytest.mark.parametrize("stream", [True, False])
async def test_cancelling_closes_the_provider_call(
    gateway: Gateway, handle: str, stream: bool, openai_fake: OpenAIServer, anthropic_fake: AnthropicServer
) -> None:
    fake = fake_of(handle, openai_fake, anthropic_fake)
    fake.reply(Reply(text="word " * 1000, delta_delay=0.06) if stream else Reply(hang=True))
    if stream:
        call = gateway.stream(handle)
        await call.read()
        call.cancel()
    else:
        task = asyncio.create_task(gateway.generate(handle))
        await until(lambda: fake.requests)
        task.cancel()
    await until(lambda: fake.requests[-1].outcome == "gone")


async def test_a_deadline_closes_it_too(gateway: Gateway, openai_fake: OpenAIServer) -> None:
    await gateway.generate(OPENAI)
    openai_fake.reply(Reply(hang=True))
    with pytest.raises(grpc.RpcError) as caught:
        await gateway.chat.Generate(GenerateRequest(request=generation(OPENAI)), timeout=1)
    assert from_rpc(caught.value).code is grpc.StatusCode.DEADLINE_EXCEEDED
    await until(lambda: [one.outcome for one in openai_fake.requests] == ["done", "gone"])


@pytest.mark.parametrize(
    ("reply", "code", "reason"),
    [
        (Reply(error="authentication"), grpc.StatusCode.FAILED_PRECONDITION, "LLM_AUTHENTICATION"),
        (Reply(error="quota"), grpc.StatusCode.RESOURCE_EXHAUSTED, "LLM_QUOTA_EXHAUSTED"),
        (Reply(error="context_overflow"), grpc.StatusCode.OUT_OF_RANGE, "LLM_CONTEXT_OVERFLOW"),
        (Reply(error="bad_request"), grpc.StatusCode.INVALID_ARGUMENT, "LLM_BAD_REQUEST"),
        (Reply(hang=True), grpc.StatusCode.DEADLINE_EXCEEDED, "LLM_TIMEOUT"),
        (Reply(text="", finish="length"), grpc.StatusCode.DATA_LOSS, "LLM_EMPTY_RESPONSE"),
        (Reply(raw_body="<html>"), grpc.StatusCode.FAILED_PRECONDITION, "LLM_NOT_AN_API"),
    ],
)
@pytest.mark.parametrize("stream", [True, False])
async def test_failures(
    gateway: Gateway, openai_fake: OpenAIServer, reply: Reply, code: grpc.StatusCode, reason: str, stream: bool
) -> None:
    openai_fake.reply(reply)
    patience = Duration(nanos=300_000_000) if reply.hang else Duration(seconds=60)
    with pytest.raises(grpc.RpcError) as caught:
        await gateway.outcome(OPENAI, stream=stream, stall_timeout=patience)
    error = from_rpc(caught.value)
    assert (error.code, error.reason) == (code, reason)
    assert error.metadata["provider"] == "openai"
    assert error.metadata["handle"] == OPENAI
    assert len(openai_fake.requests) == 1
    # The next one works.
    assert (await gateway.generate(OPENAI)).message.parts


async def test_an_error_after_the_first_delta_ends_the_stream_with_it(
    gateway: Gateway, openai_fake: OpenAIServer
) -> None:
    openai_fake.reply(Reply(text="one two three four", truncate_after=3, delta_delay=0.05))
    call = gateway.stream(OPENAI)
    seen = []
    with pytest.raises(grpc.RpcError) as caught:
        seen += [event async for event in call]
    assert from_rpc(caught.value).reason == "LLM_STREAM_INCOMPLETE"
    assert len(openai_fake.requests) == 1


@pytest.mark.parametrize("stream", [True, False])
async def test_passing_failures_are_tried_again_before_the_first_token(
    gateway: Gateway, openai_fake: OpenAIServer, stream: bool
) -> None:
    openai_fake.reply(Reply(error="server", retry_after=0.01), Reply(error="rate_limit", retry_after=0.01))
    assert (await gateway.outcome(OPENAI, stream=stream)).message.parts
    assert len(openai_fake.requests) == 3


async def test_the_account(gateway: Gateway, openai_fake: OpenAIServer) -> None:
    openai_fake.reply(Reply(text="hi", usage=Usage(100, 7, cached=40, reasoning=2)))
    await gateway.generate(OPENAI)
    _ = [event async for event in gateway.stream(DEMO)]
    await gateway.embed("loci/hash", "a", "b")
    first, second, third = await gateway.usage()
    expected = {
        "kind": "chat",
        "handle": OPENAI,
        "run_id": UUID(int=3),
        "step_id": UUID(int=4),
        "agent_id": UUID(int=5),
        "prompt_tokens": 100,
        "completion_tokens": 7,
        "cached_input_tokens": 40,
        "cache_write_tokens": None,
        "reasoning_tokens": 2,
        "estimated": False,
        "provider_model": "gpt-4o-mini",
    }
    assert {name: first[name] for name in expected} == expected
    assert first["milliseconds"] >= 0
    assert (second["handle"], second["estimated"]) == (DEMO, True)
    assert (third["kind"], third["handle"], third["completion_tokens"]) == ("embedding", "loci/hash", 0)


@pytest.mark.parametrize("stream", [False, True])
async def test_what_is_asked_for_beside_the_message(gateway: Gateway, openai_fake: OpenAIServer, stream: bool) -> None:
    openai_fake.reply(Reply(text="one two"), Reply(text="{}"))
    details = {"top_logprobs": 1, "return_token_ids": True, "include_trace": True}
    reply = await gateway.outcome(OPENAI, stream=stream, **details)
    assert [token["token"] for token in orjson.loads(reply.logprobs_json)["content"]] == ["one ", "two"]
    assert list(reply.output_token_ids) == [1000, 1001]
    assert orjson.loads(reply.output_token_logprobs_json) == [[-0.25, 1000, "one "], [-0.5, 1001, "two"]]
    assert orjson.loads(reply.provider_trace_json)["request"] == openai_fake.requests[-1].body
    # The field comes before the settings.
    formats = {"response_format_json": '{"type":"json_object"}', "settings_json": '{"response_format":{"type":"text"}}'}
    plain = await gateway.outcome(OPENAI, stream=stream, **formats)
    assert openai_fake.requests[-1].body["response_format"] == {"type": "json_object"}
    assert (plain.logprobs_json, list(plain.output_token_ids), plain.provider_trace_json) == ("", [], "")


async def test_a_response_format_in_the_settings(gateway: Gateway, openai_fake: OpenAIServer) -> None:
    wanted = {"type": "json_schema", "json_schema": {"name": "s", "schema": {"type": "object"}}}
    await gateway.generate(OPENAI, settings_json=orjson.dumps({"response_format": wanted}).decode())
    assert openai_fake.requests[-1].body["response_format"] == wanted
    await gateway.generate(OPENAI, settings_json='{"response_format": {"type": "text"}}')
    assert "response_format" not in openai_fake.requests[-1].body


@pytest.mark.parametrize(
    ("handle", "estimated", "tokens"), [(OPENAI, True, 6), (DEMO, True, 6), (ANTHROPIC, False, None)]
)
async def test_tokens_are_counted(
    gateway: Gateway, anthropic_fake: AnthropicServer, handle: str, estimated: bool, tokens: int | None
) -> None:
    counted = await gateway.chat.CountTokens(CountTokensRequest(request=generation(handle, "eight ch")))
    if tokens is None:
        tokens = len(orjson.dumps(anthropic_fake.requests[-1].body["messages"])) // 4
    assert (counted.tokens, counted.estimated) == (tokens, estimated)
    assert not await gateway.usage()
    with pytest.raises(grpc.RpcError) as caught:
        await gateway.chat.CountTokens(CountTokensRequest(request=generation("nobody/none")))
    assert from_rpc(caught.value).reason == "MODEL_NOT_FOUND"


async def test_an_error_brings_the_window_and_the_trace(gateway: Gateway, openai_fake: OpenAIServer) -> None:
    openai_fake.reply(Reply(error="context_overflow"))
    with pytest.raises(grpc.RpcError) as caught:
        await gateway.generate(OPENAI, "word " * 600, include_trace=True)
    error = from_rpc(caught.value)
    assert (error.metadata["limit"], error.metadata["requested"]) == ("128000", "130001")
    # Whole, though longer than other values may be.
    trace = orjson.loads(error.metadata["provider_trace"])
    assert trace["request"]["messages"][-1]["content"] == "word " * 600


async def test_who_may_call(gateway: Gateway) -> None:
    async with grpc.aio.insecure_channel(gateway.address) as bare:
        stub: Any = ChatServiceStub(bare)
        with pytest.raises(grpc.RpcError) as caught:
            await stub.Generate(GenerateRequest(request=generation(DEMO)))
    assert from_rpc(caught.value).reason == "CONTEXT_MISSING"
    elsewhere = SIGNER.signed(CallContext(UUID(int=1), UUID(int=2), "user", ("memory",)))
    with use_context(elsewhere), pytest.raises(grpc.RpcError) as caught:
        await gateway.generate(DEMO)
    assert from_rpc(caught.value).reason == "CONTEXT_WRONG_AUDIENCE"


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"messages": []}, "LLM_BAD_REQUEST"),
        ({"messages": [chat_pb2.ChatMessage()]}, "LLM_BAD_REQUEST"),
        (
            {"messages": [chat_pb2.ChatMessage(role=chat_pb2.CHAT_ROLE_USER, parts=[chat_pb2.ChatPart()])]},
            "LLM_BAD_REQUEST",
        ),
        ({"settings_json": "["}, "LLM_BAD_REQUEST"),
        ({"response_format_json": "["}, "LLM_BAD_REQUEST"),
        ({"response_format_json": '{"type": "xml"}'}, "LLM_BAD_REQUEST"),
        ({"response_format_json": '{"type": "json_schema"}'}, "LLM_BAD_REQUEST"),
        ({"settings_json": '{"response_format": {"type": "xml"}}'}, "LLM_BAD_REQUEST"),
        ({"top_logprobs": 21}, "LLM_BAD_REQUEST"),
        ({"tools": [DICE], "tool_choice": chat_pb2.ToolChoice(tool_name="other")}, "LLM_BAD_REQUEST"),
        ({"settings_json": '{"tempreature": 1}'}, "LLM_BAD_REQUEST"),
        ({"step_id": "nonsense"}, "INVALID_ID"),
        ({"handle": "openai/none"}, "MODEL_NOT_FOUND"),
        ({"handle": "nobody/none"}, "MODEL_NOT_FOUND"),
    ],
)
async def test_bad_requests(gateway: Gateway, fields: dict[str, Any], reason: str) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        await gateway.generate(**{"handle": OPENAI, **fields})
    assert from_rpc(caught.value).reason == reason


async def test_spans_follow_the_genai_conventions_without_the_prompt(
    gateway: Gateway, openai_fake: OpenAIServer, spans: InMemorySpanExporter
) -> None:
    openai_fake.reply(Reply(text="hi", usage=Usage(10, 2)), Reply(error="authentication"))
    _ = [event async for event in gateway.stream(OPENAI, "the secret prompt", max_output_tokens=9)]
    with pytest.raises(grpc.RpcError):
        await gateway.generate(OPENAI)
    good, bad = (span for span in spans.get_finished_spans() if span.name == "chat gpt-4o-mini")
    attributes = dict(good.attributes or {})
    assert attributes["gen_ai.operation.name"] == "chat"
    assert attributes["gen_ai.provider.name"] == "openai"
    assert attributes["gen_ai.request.max_tokens"] == 9
    assert (attributes["gen_ai.usage.input_tokens"], attributes["gen_ai.usage.output_tokens"]) == (10, 2)
    assert attributes["gen_ai.response.finish_reasons"] == ("stop",)
    assert (bad.attributes or {})["error.type"] == "LLM_AUTHENTICATION"
    assert "secret" not in str([span.to_json() for span in spans.get_finished_spans()])
    assert good.parent is not None
