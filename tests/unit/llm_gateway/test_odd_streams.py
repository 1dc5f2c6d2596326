"""Every form of a reply in every dialect: the same message however the bytes are cut, streamed and whole alike."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.common.core.json_text import parse_pieces, well_formed
from services.llm_gateway.core.chat import (
    Completed,
    Event,
    FinishReason,
    Generation,
    Reasoning,
    ReasoningDelta,
    Text,
    TextDelta,
    ToolCall,
    ToolCallDelta,
)
from services.llm_gateway.core.errors import LlmEmptyResponse, LlmError, LlmServerError, LlmStreamIncomplete
from services.llm_gateway.core.ndjson import NdjsonParser
from services.llm_gateway.core.refusals import Caller
from services.llm_gateway.core.reply_builder import ReplyBuilder
from services.llm_gateway.core.reply_reader import ReplyReader
from services.llm_gateway.core.sse import SseParser
from services.llm_gateway.http.exchange import Call, Exchange
from services.llm_gateway.http.transport import Transport
from services.llm_gateway.vendors.anthropic import replies as anthropic
from services.llm_gateway.vendors.bedrock import replies as bedrock
from services.llm_gateway.vendors.bedrock.framing import EventStreamParser
from services.llm_gateway.vendors.google import replies as google
from services.llm_gateway.vendors.ollama import replies as ollama
from services.llm_gateway.vendors.openai import replies as chat
from services.llm_gateway.vendors.openai.profiles import PLAIN
from services.llm_gateway.vendors.responses import replies as responses
from services.llm_gateway.vendors.shared.text_thoughts import AUTO, TextHabits
from tests.fakes.odd_forms import FORMS, Form
from tests.fakes.odd_streams import DIALECTS, ERROR
from tests.unit.llm_gateway.builders import config, request, tool

REQUEST = request(tools=[tool("f"), tool("g")])
READERS: dict[str, tuple[Callable[[ReplyBuilder], ReplyReader], Callable[[], Any], Callable[[int, Any], Any]]] = {
    "chat completions": (
        lambda builder: chat.Reader(builder, REQUEST, PLAIN, TextHabits(AUTO).reader(builder, "m")),
        SseParser,
        chat.read_refusal,
    ),
    "responses": (lambda builder: responses.Reader(builder, "openai", REQUEST), SseParser, responses.read_refusal),
    "anthropic": (lambda builder: anthropic.Reader(builder), SseParser, anthropic.read_refusal),
    "google": (lambda builder: google.Reader(builder, "p", "h"), SseParser, google.read_refusal),
    "bedrock": (
        lambda builder: bedrock.Reader(builder, text=TextHabits(AUTO).reader(builder, "m")),
        EventStreamParser,
        bedrock.read_refusal,
    ),
    "ollama": (
        lambda builder: ollama.Reader(builder, 40, TextHabits(AUTO).reader(builder, "m")),
        NdjsonParser,
        ollama.read_refusal,
    ),
}
FINISHES = {
    "stop": FinishReason.STOP,
    "calls": FinishReason.TOOL_CALLS,
    "length": FinishReason.LENGTH,
    "filter": FinishReason.CONTENT_FILTER,
    "unsaid": FinishReason.UNKNOWN,
}
CASES = [(dialect, form) for dialect in DIALECTS for form in FORMS]


class CutTransport(Transport):
    """A transport whose answers are here, in these chunks."""

    def __init__(self, chunks: Sequence[bytes], read_refusal: Callable[[int, Any], Any]) -> None:
        super().__init__(None, None, Caller("p", "http://x", "KEY", "URL"), read_refusal)  # type: ignore[arg-type]
        self._chunks = chunks

    async def post(self, path: str, body: bytes, **options: Any) -> dict[str, Any]:
        whole: dict[str, Any] = parse_pieces(b"".join(self._chunks))
        return whole

    async def events(self, path: str, body: bytes, parser: Any, **options: Any) -> AsyncGenerator[Any, None]:
        for chunk in self._chunks:
            for event in parser.feed(chunk):
                yield event
        for event in parser.close():
            yield event


def read(dialect: str, chunks: Sequence[bytes], *, stream: bool) -> tuple[Generation | LlmError, list[Event]]:
    """What came of a reply, and what was heard before."""
    make_reader, parser, read_refusal = READERS[dialect]
    heard: list[Event] = []

    async def generation() -> Generation:
        exchange = Exchange(config("openai"), CutTransport(chunks, read_refusal))

        async def call() -> Call:
            return Call("/", b"{}", make_reader(ReplyBuilder()), stream, parser)

        async for event in exchange.generate(REQUEST, call, deltas=True):
            if isinstance(event, Completed):
                return event.generation
            heard.append(event)
        raise AssertionError("no end")

    try:
        return asyncio.run(generation()), heard
    except LlmError as error:
        return error, heard


def parts_of(generation: Generation) -> list[tuple[str, ...]]:
    """The parts, without what a dialect adds to them; arguments as the JSON that they are."""
    found: list[tuple[str, ...]] = []
    for part in generation.message.parts:
        match part:
            case Text():
                found.append(("text", part.text))
            case Reasoning():
                found.append(("thoughts", part.text))
            case ToolCall():
                found.append(("call", part.name, json.dumps(json.loads(part.arguments_json), sort_keys=True)))
            case _:
                raise AssertionError(part)
    return found


def expected_parts(form: Form) -> list[tuple[str, ...]]:
    thoughts = well_formed("".join(form.thoughts))
    text = well_formed("".join(form.texts).replace("\0", ""))
    said = [("thoughts", thoughts)] if thoughts else []
    said += [("text", text)] if text else []
    calls = [
        ("call", call.name, json.dumps(json.loads(well_formed(call.arguments)), sort_keys=True)) for call in form.calls
    ]
    return [*said, *calls]


def check(dialect: str, form: Form, outcome: Generation | LlmError) -> None:
    """What must come of a form, whatever the dialect."""
    if form.error_after is not None:
        assert isinstance(outcome, LlmServerError)
        assert ERROR in outcome.message
        assert outcome.retryable
    elif form.end == "cut":
        assert isinstance(outcome, LlmStreamIncomplete)
    elif form.end == "length" and not (form.texts or form.thoughts or form.calls):
        assert isinstance(outcome, LlmEmptyResponse)
    else:
        assert isinstance(outcome, Generation), outcome
        assert parts_of(outcome) == expected_parts(form)
        calls = [part for part in outcome.message.parts if isinstance(part, ToolCall)]
        assert len({call.id for call in calls}) == len(calls)
        assert all(call.id for call in calls)
        assert outcome.usage.estimated == (not form.usage)
        if form.usage:
            assert (outcome.usage.prompt_tokens, outcome.usage.completion_tokens) == (9, 3)
        wanted = FinishReason.TOOL_CALLS if calls and form.end in ("stop", "unsaid") else FINISHES[form.end]
        # Ollama has no word for a filter, and Responses and it say that a reply is complete.
        alike = {wanted} | ({FinishReason.STOP} if form.end in ("unsaid", "filter") else set())
        assert outcome.finish_reason in alike


def check_heard(heard: Iterable[Event], outcome: Generation) -> None:
    """What is streamed is what the message says."""
    said: dict[int, str] = {}
    for event in heard:
        assert isinstance(event, TextDelta | ReasoningDelta | ToolCallDelta)
        said[event.index] = said.get(event.index, "") + (
            event.arguments if isinstance(event, ToolCallDelta) else event.text
        )
    for index, part in enumerate(outcome.message.parts):
        if isinstance(part, Text | Reasoning):
            assert said.get(index, "") == part.text
        elif isinstance(part, ToolCall):
            assert (said.get(index) or "{}") == part.arguments_json


def cut(data: bytes, sizes: Sequence[int]) -> list[bytes]:
    chunks, place, number = [], 0, 0
    while place < len(data):
        chunks.append(data[place : place + sizes[number % len(sizes)]])
        place += sizes[number % len(sizes)]
        number += 1
    return chunks


@pytest.mark.parametrize(("dialect", "name"), CASES)
def test_frames_lines_and_whole(dialect: str, name: str) -> None:
    form, odd = FORMS[name], DIALECTS[dialect]
    frames = odd.frames(form)
    by_frames, heard = read(dialect, frames, stream=True)
    check(dialect, form, by_frames)
    by_lines, _ = read(dialect, b"".join(frames).splitlines(keepends=True), stream=True)
    check(dialect, form, by_lines)
    if not isinstance(by_frames, Generation):
        return
    check_heard(heard, by_frames)
    whole, said = read(dialect, [json.dumps(odd.whole(form)).encode()], stream=False)
    check(dialect, form, whole)
    assert isinstance(whole, Generation)
    check_heard(said, whole)
    assert (whole.usage.estimated, whole.finish_reason) == (by_frames.usage.estimated, by_frames.finish_reason)


@pytest.mark.parametrize("dialect", DIALECTS)
@settings(max_examples=150, derandomize=True, deadline=None)
@given(
    name=st.sampled_from([name for name, form in FORMS.items() if sum(map(len, form.texts + form.thoughts)) < 2_000]),
    sizes=st.lists(st.integers(1, 60), min_size=1, max_size=6),
)
def test_whatever_the_cut(dialect: str, name: str, sizes: list[int]) -> None:
    form = FORMS[name]
    outcome, heard = read(dialect, cut(b"".join(DIALECTS[dialect].frames(form)), sizes), stream=True)
    check(dialect, form, outcome)
    if isinstance(outcome, Generation):
        check_heard(heard, outcome)


@pytest.mark.parametrize("dialect", ["chat completions", "responses", "anthropic", "google"])
@pytest.mark.parametrize("line_end", [b"\r\n", b"\r"])
def test_other_ends_of_lines(dialect: str, line_end: bytes) -> None:
    for name in ("words", "two calls", "noise"):
        data = b"".join(DIALECTS[dialect].frames(FORMS[name])).replace(b"\n", line_end)
        check(dialect, FORMS[name], read(dialect, cut(data, [7, 1, 3]), stream=True)[0])
        # A mark of the byte order is no part of the first line (WHATWG HTML, 9.2.5).
        check(dialect, FORMS[name], read(dialect, cut(b"\xef\xbb\xbf" + data, [1, 2]), stream=True)[0])


def test_there_are_forms_enough() -> None:
    assert len(FORMS) >= 40
