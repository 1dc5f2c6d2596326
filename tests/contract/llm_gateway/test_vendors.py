"""Failures of vendors: each failure is an error of its own, with provider, status and advice."""

import asyncio
import socket
from contextlib import aclosing
from typing import Any

import pytest

from services.llm_gateway.core import errors
from services.llm_gateway.core.chat import Completed, FinishReason, ReasoningDelta, Text, TextDelta, Usage
from services.llm_gateway.http import transport
from services.llm_gateway.vendors.openai.client import OpenAIProvider
from tests.contract.llm_gateway.conftest import World, framed_by
from tests.fakes import script
from tests.fakes.script import Reply
from tests.polling import until
from tests.unit.llm_gateway.builders import config, model, request, system, user


async def failure(world: World, reply: Reply, *, stream: bool, times: int = 1, **options: Any) -> errors.LlmError:
    world.script(*[reply] * times)
    with pytest.raises(errors.LlmError) as caught:
        await world.events(world.ask("hello", **options), stream=stream)
    assert caught.value.metadata["provider"] == world.provider.name
    assert caught.value.metadata["handle"] == world.model.handle
    return caught.value


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("kind", "cls", "retryable"),
    [
        ("authentication", errors.LlmAuthentication, False),
        ("rate_limit", errors.LlmRateLimit, True),
        ("quota", errors.LlmQuotaExhausted, False),
        ("context_overflow", errors.LlmContextOverflow, False),
        ("bad_request", errors.LlmBadRequest, False),
        ("model_not_found", errors.ModelNotFound, False),
        ("server", errors.LlmServerError, True),
        ("overloaded", errors.LlmServerError, True),
    ],
)
async def test_refusals(
    vendor_world: World, kind: Any, cls: type[errors.LlmError], retryable: bool, stream: bool
) -> None:
    error = await failure(vendor_world, Reply(error=kind, retry_after=3), stream=stream)
    assert type(error) is cls
    assert error.retryable is retryable
    assert error.retry_after == 3
    assert int(error.metadata["status"]) >= 400
    if cls is errors.LlmAuthentication:
        assert f"{vendor_world.provider.name.upper()}_API_KEY" in error.message


@pytest.mark.parametrize("stream", [False, True])
async def test_a_provider_that_hangs(vendor_world: World, stream: bool) -> None:
    error = await failure(vendor_world, Reply(hang=True), stream=stream, stall_timeout=0.2)
    assert isinstance(error, errors.LlmTimeout)
    assert "sent nothing for 0.2 s" in error.message
    await until(lambda: all(one.outcome != "open" for one in vendor_world.vendor.requests))


async def test_a_stream_that_stalls(vendor_world: World) -> None:
    error = await failure(vendor_world, Reply(text="a b c d", stall_after=3), stream=True, stall_timeout=0.5)
    assert isinstance(error, errors.LlmTimeout)


async def test_a_slow_first_byte_is_waited_for(vendor_world: World) -> None:
    vendor_world.script(Reply(text="late", first_delay=0.1))
    _, reply = await vendor_world.streamed(vendor_world.ask("hello"))
    assert list(reply.message.parts) == [Text("late")]


@pytest.mark.parametrize("fault", ["truncate_after", "end_after"])
@pytest.mark.parametrize("frames", [0, 1, 4])
async def test_a_stream_that_breaks_off(vendor_world: World, fault: str, frames: int) -> None:
    faults: dict[str, Any] = {fault: frames}
    times = vendor_world.spec.tries
    error = await failure(vendor_world, Reply(text="a b c d e f", **faults), stream=True, times=times)
    assert isinstance(error, errors.LlmStreamIncomplete)
    assert "incomplete" in error.message


async def test_a_whole_reply_that_breaks_off(vendor_world: World) -> None:
    times = vendor_world.spec.tries
    error = await failure(vendor_world, Reply(text="a b", truncate_after=0), stream=False, times=times)
    assert isinstance(error, errors.LlmStreamIncomplete)


async def test_an_error_in_mid_stream(vendor_world: World) -> None:
    error = await failure(vendor_world, Reply(text="a b c", error_after=3, message="lost a node"), stream=True)
    assert isinstance(error, errors.LlmServerError)
    assert "lost a node" in error.message


@pytest.mark.parametrize("stream", [False, True])
async def test_a_page_of_html(vendor_world: World, stream: bool) -> None:
    error = await failure(vendor_world, Reply(raw_body="<html>Welcome</html>"), stream=stream)
    assert isinstance(error, errors.LlmNotAnApi)
    assert not error.retryable
    assert "text/html" in error.message
    assert f"{vendor_world.provider.name.upper()}_BASE_URL" in error.message


@pytest.mark.parametrize("data", ["data: {broken\n\n", "data: 7\n\n", ": nothing\n\n", "data: [DONE]\n\n"])
@pytest.mark.parametrize("vendor_world", framed_by("sse"), indirect=True)
async def test_malformed_events(vendor_world: World, data: str) -> None:
    reply = Reply(raw_body=data, content_type="text/event-stream")
    error = await failure(vendor_world, reply, stream=True)
    assert isinstance(error, errors.LlmStreamIncomplete | errors.LlmStreamMalformed)


@pytest.mark.parametrize("stream", [False, True])
async def test_an_empty_reply(vendor_world: World, stream: bool) -> None:
    error = await failure(vendor_world, Reply(text="", finish=vendor_world.spec.length), stream=stream)
    assert isinstance(error, errors.LlmEmptyResponse)
    vendor_world.script(Reply(text=""))
    silent = await vendor_world.whole(vendor_world.ask("hello"))
    assert (list(silent.message.parts), silent.finish_reason) == ([], FinishReason.STOP)


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("vendor_world", framed_by("sse"), indirect=True)
async def test_comments_pings_and_line_ends(vendor_world: World, line_end: str) -> None:
    vendor_world.script(Reply(text="one two", keepalives=True, line_end=line_end))
    _, reply = await vendor_world.streamed(vendor_world.ask("hello"))
    assert list(reply.message.parts) == [Text("one two")]


@pytest.mark.parametrize("stream", [False, True])
async def test_a_compressed_reply(vendor_world: World, stream: bool) -> None:
    vendor_world.script(Reply(text="one two three", gzip=True, delta_delay=0.001))
    *_, completed = await vendor_world.events(vendor_world.ask("hello"), stream=stream)
    assert isinstance(completed, Completed)
    assert list(completed.generation.message.parts) == [Text("one two three")]
    if vendor_world.spec.framing != "websocket":  # its messages are not compressed
        assert "gzip" in vendor_world.vendor.requests[-1].headers["accept-encoding"]


async def test_reasoning(vendor_world: World) -> None:
    vendor_world.script(*[Reply(text="So: 4.", reasoning="two and two", redacted="opaque")] * 2)
    deltas, streamed = await vendor_world.streamed(vendor_world.ask("2+2?"))
    whole = await vendor_world.whole(vendor_world.ask("2+2?"))
    assert streamed.message == whole.message
    thoughts = [part for part in streamed.message.parts if not isinstance(part, Text)]
    assert thoughts == list(vendor_world.spec.thoughts)
    assert "".join(delta.text for delta in deltas if isinstance(delta, ReasoningDelta)) == "two and two"
    # What it thought can be sent back.
    vendor_world.script(Reply(text="Yes."))
    again = vendor_world.ask(user("2+2?"), streamed.message, user("sure?"))
    assert (await vendor_world.whole(again)).finish_reason is FinishReason.STOP


@pytest.mark.parametrize("stream", [False, True])
async def test_usage_as_the_vendor_counts(vendor_world: World, stream: bool) -> None:
    vendor_world.script(Reply(text="hi", usage=script.Usage(100, 7, cached=40, cache_write=10)))
    *_, completed = await vendor_world.events(vendor_world.ask("hello"), stream=stream)
    usage: Usage = completed.generation.usage  # type: ignore[union-attr]
    assert usage == vendor_world.spec.usage


async def test_leaving_early_closes_the_connection(vendor_world: World) -> None:
    vendor_world.script(Reply(text="word " * 1_000, delta_delay=0.06))
    asked = vendor_world.ask("hello")
    async with aclosing(vendor_world.provider.generate(asked, vendor_world.model, stream=True)) as events:
        async for event in events:
            assert isinstance(event, TextDelta)
            break
    # Long before the minute that the reply takes.
    await until(lambda: vendor_world.vendor.requests[-1].outcome == "gone")


@pytest.mark.parametrize("stream", [False, True])
async def test_a_connection_is_used_again(vendor_world: World, stream: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "_LINGER_SECONDS", 30.0)
    # With a pause between the last event and the end of the body, as it is on a real network.
    vendor_world.script(*[Reply(text="one two", delta_delay=0.01)] * 3)
    for _ in range(3):
        async with aclosing(
            vendor_world.provider.generate(vendor_world.ask("hello"), vendor_world.model, stream=stream)
        ) as events:
            async for event in events:
                if isinstance(event, Completed):
                    break
        await until(lambda: not draining())
    assert vendor_world.vendor.connections == 1


def draining() -> bool:
    """Whether some reply is still read to its end in the background."""
    return any(getattr(task.get_coro(), "__name__", "") == "_drain" for task in asyncio.all_tasks())


@pytest.mark.parametrize("stream", [False, True])
async def test_a_connection_that_the_server_closed_is_replaced(vendor_world: World, stream: bool) -> None:
    for number in (1, 2):
        await vendor_world.events(vendor_world.ask("hello"), stream=stream)
        vendor_world.vendor.close_connections()
        await until(lambda: not vendor_world.vendor.open_connections)
        assert vendor_world.vendor.connections == number


@pytest.mark.parametrize("vendor_world", ["openai"], indirect=True)
async def test_a_server_that_does_not_close_after_the_end_is_not_waited_for(vendor_world: World) -> None:
    # A first role frame, the word, the finish, the usage and the end marker.
    vendor_world.script(Reply(text="word", stall_after=5))
    _, reply = await vendor_world.streamed(vendor_world.ask("hello"))
    assert list(reply.message.parts) == [Text("word")]


async def test_a_key_travels_and_what_is_sent_is_accepted(vendor_world: World) -> None:
    vendor_world.script(Reply(text="hi"))
    await vendor_world.whole(vendor_world.ask("hello", temperature=0.3))
    sent = vendor_world.sent
    header, credential = vendor_world.spec.credential
    assert sent.headers[header] == credential
    assert sent.body.get("model", vendor_world.model.name) == vendor_world.model.name
    if vendor_world.spec.dialect == "anthropic":
        assert sent.headers["x-api-key"] == "sk-test"
        assert sent.headers["anthropic-version"] == "2026-10-21"


async def test_an_endpoint_that_resolves_to_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    system = socket.getaddrinfo

    def resolve(host: Any, *rest: Any, **options: Any) -> Any:
        """The machine's own resolver may be silent for long."""
        if host == "no-such-host.invalid":
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return system(host, *rest, **options)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    for url in ("http://127.0.0.1:9/v1", "http://no-such-host.invalid/v1"):
        provider = OpenAIProvider(config("openai", url, stall_seconds=30.0, reply_seconds=30.0))
        asked = request(user("hello"))
        with pytest.raises(errors.LlmConnection, match="cannot be reached at") as caught:
            _ = [event async for event in provider.generate(asked, model("openai/gpt-4o-mini"), stream=False)]
        assert "OPENAI_BASE_URL" in caught.value.message
        assert "Timeout" not in caught.value.message
        assert caught.value.retryable
        await provider.close()


@pytest.mark.parametrize("vendor_world", ["anthropic"], indirect=True)
async def test_prompts_are_marked_for_the_cache(vendor_world: World) -> None:
    asked = vendor_world.ask(system("You are kind and helpful. " * 50), user("hello"))
    first, second = [(await vendor_world.whole(asked)).usage for _ in range(2)]
    assert first.cache_write_tokens == second.cached_input_tokens
    assert (second.cached_input_tokens or 0) > 100


@pytest.mark.parametrize("data", ["{broken\n", "7\n", "\n\n", '{"message": {"content"', '{"done": false}\n'])
@pytest.mark.parametrize("vendor_world", framed_by("ndjson"), indirect=True)
async def test_malformed_lines(vendor_world: World, data: str) -> None:
    reply = Reply(raw_body=data, content_type="application/x-ndjson")
    error = await failure(vendor_world, reply, stream=True)
    malformed = data in ("{broken\n", "7\n")
    assert type(error) is (errors.LlmStreamMalformed if malformed else errors.LlmStreamIncomplete)


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\n\n"])
@pytest.mark.parametrize("vendor_world", framed_by("ndjson"), indirect=True)
async def test_line_ends(vendor_world: World, line_end: str) -> None:
    vendor_world.script(Reply(text="one two", line_end=line_end))
    _, reply = await vendor_world.streamed(vendor_world.ask("hello"))
    assert list(reply.message.parts) == [Text("one two")]
