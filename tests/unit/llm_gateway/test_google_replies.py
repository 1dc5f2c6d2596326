"""Google's replies as the neutral chat, and there and back again."""

from collections.abc import Iterator, Sequence
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.llm_gateway.core.chat import (
    Delta,
    FinishReason,
    Generation,
    Part,
    Reasoning,
    ReasoningDelta,
    RedactedReasoning,
    Text,
    TextDelta,
    ToolCall,
    ToolCallDelta,
    Usage,
)
from services.llm_gateway.core.errors import LlmBadRequest, LlmEmptyResponse
from services.llm_gateway.core.reply_builder import ReplyBuilder
from services.llm_gateway.core.sse import SseParser
from services.llm_gateway.vendors.google.contents import contents_of
from services.llm_gateway.vendors.google.replies import Reader, read_refusal, status_of, usage_of
from tests.unit.llm_gateway.builders import assistant, model, request, results, user


def chunk(*parts: dict[str, Any], finish: str = "", **candidate: Any) -> dict[str, Any]:
    made = {"content": {"role": "model", "parts": list(parts)}, **candidate}
    return {
        "candidates": [{**made, "finishReason": finish} if finish else made],
        "responseId": "r1",
        "modelVersion": "gemini-x",
        "usageMetadata": {"promptTokenCount": 5, "candidatesTokenCount": 2},
    }


def read(*chunks: dict[str, Any], **options: Any) -> tuple[Generation, list[Delta]]:
    builder = ReplyBuilder()
    reader = Reader(builder, "google_ai", "h")
    seen = [delta for one in chunks for delta in reader.take_event(one)]
    assert reader.ended
    reader.close()
    return builder.generation(request(handle="h", **options), "google_ai", 1), seen


def call(name: str, id: str = "", **fields: Any) -> dict[str, Any]:
    return {"functionCall": {"name": name, "args": {"n": 1}} | ({"id": id} if id else {}), **fields}


def test_a_stream() -> None:
    reply, seen = read(
        chunk({"text": "h", "thought": True}),
        chunk({"text": "m", "thought": True}),
        chunk({"text": "Go"}),
        chunk({"text": "."}, call("f", "c1", thoughtSignature="s1")),
        chunk(call("g", "c2")),
        chunk({"text": "Done"}),
        chunk({"text": "", "thoughtSignature": "s2"}, finish="STOP"),
    )
    assert list(reply.message.parts) == [
        Reasoning("hm", "google:"),
        Text("Go."),
        RedactedReasoning("google:s1"),
        ToolCall("c1", "f", '{"n":1}'),
        ToolCall("c2", "g", '{"n":1}'),
        Text("Done", "google:s2"),
    ]
    assert (reply.finish_reason, reply.provider_response_id, reply.provider_model) == (
        FinishReason.TOOL_CALLS,
        "r1",
        "gemini-x",
    )
    assert seen == [
        ReasoningDelta(0, "h"),
        ReasoningDelta(0, "m"),
        TextDelta(1, "Go"),
        TextDelta(1, "."),
        ToolCallDelta(3, "c1", "f", ""),
        ToolCallDelta(3, "c1", "f", '{"n":1}'),
        ToolCallDelta(4, "c2", "g", ""),
        ToolCallDelta(4, "c2", "g", '{"n":1}'),
        TextDelta(5, "Done"),
    ]


def test_signatures_end_what_they_sign_and_stand_alone_where_there_is_nothing() -> None:
    signed = {"text": "a", "thoughtSignature": "s"}
    thought = {"text": "t", "thought": True, "thoughtSignature": "u"}
    reply, _ = read(chunk({"text": "", "thoughtSignature": "v"}, signed, {"text": "b"}, thought, finish="STOP"))
    assert list(reply.message.parts) == [
        RedactedReasoning("google:v"),
        Text("a", "google:s"),
        Text("b"),
        Reasoning("t", "google:u"),
    ]


def test_calls_without_ids_get_the_same_ones_whenever_they_are_read() -> None:
    made = chunk(call("f"), call("f"), finish="STOP")
    first, second = [part for part in read(made)[0].message.parts if isinstance(part, ToolCall)]
    assert first.id.startswith("call_")
    assert first.id != second.id
    assert list(read(made)[0].message.parts) == [first, second]
    nameless = {name: value for name, value in made.items() if name != "responseId"}
    one, other = read(nameless)[0].message.parts[0], read(nameless)[0].message.parts[0]
    assert one != other


@pytest.mark.parametrize(
    ("word", "finish"),
    [
        ("STOP", FinishReason.STOP),
        ("MAX_TOKENS", FinishReason.LENGTH),
        ("SAFETY", FinishReason.CONTENT_FILTER),
        ("RECITATION", FinishReason.CONTENT_FILTER),
        ("PROHIBITED_CONTENT", FinishReason.CONTENT_FILTER),
        ("MALFORMED_FUNCTION_CALL", FinishReason.UNKNOWN),
        ("SOMETHING_NEW", FinishReason.UNKNOWN),
    ],
)
def test_finish_reasons(word: str, finish: FinishReason) -> None:
    assert read(chunk({"text": "hi"}, finish=word))[0].finish_reason is finish


@pytest.mark.parametrize("parts", [[], [{"text": "I think", "thought": True}]])
def test_a_call_that_went_wrong_is_tried_again(parts: list[dict[str, Any]]) -> None:
    broken = chunk(*parts, finish="MALFORMED_FUNCTION_CALL", finishMessage="print(f(1)")
    with pytest.raises(LlmEmptyResponse, match=r"malformed_function_call: print\(f\(1\)") as caught:
        read(broken)
    assert caught.value.retryable


def test_a_prompt_that_is_blocked() -> None:
    reader = Reader(ReplyBuilder(), "google_ai", "h")
    with pytest.raises(LlmBadRequest, match=r"google_ai blocked the prompt \(SAFETY: too blue\)") as caught:
        list(reader.take_event({"promptFeedback": {"blockReason": "SAFETY", "blockReasonMessage": "too blue"}}))
    assert caught.value.metadata["handle"] == "h"
    assert not caught.value.retryable


def test_usage() -> None:
    counts = {
        "promptTokenCount": 100,
        "toolUsePromptTokenCount": 5,
        "candidatesTokenCount": 7,
        "thoughtsTokenCount": 20,
    }
    assert usage_of({**counts, "cachedContentTokenCount": 40}) == Usage(
        105, 27, cached_input_tokens=40, reasoning_tokens=20
    )
    # While the model thinks there are no candidates yet.
    assert usage_of({"promptTokenCount": 3}) == Usage(3, 0)


def test_a_reply_over_two_requests_has_the_sum_of_their_usage() -> None:
    builder = ReplyBuilder()
    reader = Reader(builder, "google_ai", "h")
    deltas = list(reader.take_event(chunk({"text": "one "}, finish="CONTINUATION", continuationToken="t1")))
    assert orjson.loads(reader.next_body())["continuationToken"] == "t1"
    assert not reader.ended
    deltas += reader.take_event(chunk({"text": "two"}, finish="STOP"))
    assert deltas == [TextDelta(0, "one "), TextDelta(0, "two")]
    reply = builder.generation(request(handle="h"), "google_ai", 1)
    assert list(reply.message.parts) == [Text("one two")]
    assert (reply.usage, reply.finish_reason) == (Usage(10, 4), FinishReason.STOP)


def test_log_probabilities_in_pieces() -> None:
    def result(token: str, id: int) -> dict[str, Any]:
        one = {"token": token, "tokenId": id, "logProbability": -0.5}
        return {"chosenCandidates": [one], "topCandidates": [{"candidates": [one, {**one, "token": "x"}]}]}

    reply, _ = read(
        chunk({"text": "a"}, logprobsResult=result("a", 7)),
        chunk({"text": "b"}, finish="STOP", logprobsResult=result("b", 8)),
        logprobs=True,
        token_ids=True,
    )
    content = orjson.loads(reply.logprobs_json)["content"]
    assert [(one["token"], one["logprob"], len(one["top_logprobs"])) for one in content] == [
        ("a", -0.5, 2),
        ("b", -0.5, 2),
    ]
    assert list(reply.token_ids) == [7, 8]
    assert orjson.loads(reply.token_logprobs_json) == [[-0.5, 7, "a"], [-0.5, 8, "b"]]


def test_refusals() -> None:
    info = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}
    retry = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.07s"}
    body = {"error": {"code": 400, "message": "no", "status": "INVALID_ARGUMENT", "details": [info, retry, "odd"]}}
    for form in (body, [body]):
        found = read_refusal(400, form)
        assert (found.message, found.kind, found.code) == ("no", "INVALID_ARGUMENT", "API_KEY_INVALID")
        assert found.retry_after == pytest.approx(34.07)
    assert read_refusal(502, "Bad gateway").message == "Bad gateway"
    assert read_refusal(500, {}).message == ""
    assert [status_of(error) for error in ({"code": 429}, {"code": "x"}, {"code": 7}, "odd")] == [429, 500, 500, 500]


@pytest.mark.parametrize(
    ("violation", "code"),
    [
        ({"quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier", "quotaValue": "50"}, "QUOTA_EXHAUSTED"),
        ({"quotaId": "GenerateContentInputTokensPerModelPerMinute-FreeTier", "quotaValue": "0"}, "QUOTA_EXHAUSTED"),
        ({"quotaId": "GenerateContentInputTokensPerModelPerMinute", "quotaValue": "250000"}, ""),
        ({}, ""),
    ],
)
def test_a_quota_of_a_day_is_no_rate(violation: dict[str, Any], code: str) -> None:
    detail = {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [violation]}
    assert read_refusal(429, {"error": {"message": "quota", "details": [detail]}}).code == code


# No database keeps NUL, so no reply does.
TEXTS = st.text(st.characters(exclude_characters="\0", codec="utf-8"), min_size=1, max_size=8)
SIGNATURES = st.text("abcXYZ019+/=", min_size=1, max_size=8)
ARGUMENTS = st.dictionaries(st.text(max_size=4), st.one_of(st.text(max_size=4), st.booleans(), st.none()), max_size=3)


def thoughts() -> st.SearchStrategy[list[Part]]:
    marks = st.one_of(st.just(""), SIGNATURES)
    return st.builds(lambda text, mark: [Reasoning(text, f"google:{mark}")], TEXTS, marks)


def texts() -> st.SearchStrategy[list[Part]]:
    marks = st.one_of(st.none(), SIGNATURES.map("google:{}".format))
    return st.builds(lambda text, mark: [Text(text, mark)], TEXTS, marks)


def calls() -> st.SearchStrategy[list[Part]]:
    def made(signature: str | None, name: str, arguments: dict[str, Any]) -> list[Part]:
        called = ToolCall("", name, orjson.dumps(arguments).decode())
        return [called] if signature is None else [RedactedReasoning(f"google:{signature}"), called]

    return st.builds(made, st.one_of(st.none(), SIGNATURES), st.sampled_from(["f", "g"]), ARGUMENTS)


def alone() -> st.SearchStrategy[list[Part]]:
    """A signature with nothing, and a thought before it: behind a text it would be that text's."""
    return st.builds(lambda mark: [Reasoning("t", "google:x"), RedactedReasoning(f"google:{mark}")], SIGNATURES)


@st.composite
def messages(draw: st.DrawFn) -> list[Part]:
    """The parts of a reply, as Google can have given them: no two unsigned of a kind side by side."""
    parts = [
        part for group in draw(st.lists(st.one_of(thoughts(), texts(), calls(), alone()), max_size=6)) for part in group
    ]
    numbered = [
        ToolCall(f"call_{index}", part.name, part.arguments_json) if isinstance(part, ToolCall) else part
        for index, part in enumerate(parts)
    ]
    kept: list[Part] = []
    for part in numbered:
        if not kept or not _would_merge(kept[-1], part):
            kept.append(part)
    return kept


def _would_merge(before: Part, after: Part) -> bool:
    open_text = isinstance(before, Text) and before.signature is None
    open_thought = isinstance(before, Reasoning) and before.signature == "google:"
    return (open_text and isinstance(after, Text)) or (open_thought and isinstance(after, Reasoning))


def wire_of(parts: Sequence[Part]) -> list[dict[str, Any]]:
    """The parts of the model's content in the next request."""
    answers = results(*[(part.id, "") for part in parts if isinstance(part, ToolCall)])
    chat = [user("x"), assistant(*parts), answers, user("y")]
    contents = contents_of(chat, model("google_ai/gemini-2.5-flash"))
    found: list[dict[str, Any]] = [
        part for content in contents if content["role"] == "model" for part in content["parts"]
    ]
    return found


@given(messages())
def test_what_google_gave_goes_there_and_comes_back_unchanged(parts: list[Part]) -> None:
    reply, _ = read(chunk(*wire_of(parts), finish="STOP"))
    assert list(reply.message.parts) == parts


def pieces_of(part: dict[str, Any], data: st.DataObject) -> Iterator[dict[str, Any]]:
    """A part as a stream may cut it; the signature comes with the last piece, or after it."""
    text, signature = part.get("text"), part.get("thoughtSignature")
    if not text:
        yield part
        return
    plain = {name: value for name, value in part.items() if name not in ("text", "thoughtSignature")}
    cut = data.draw(st.integers(0, len(text)))
    pieces = [{"text": piece, **plain} for piece in (text[:cut], text[cut:]) if piece]
    if signature and data.draw(st.booleans()):
        pieces.append({"text": "", **plain})
    if signature:
        pieces[-1] = {**pieces[-1], "thoughtSignature": signature}
    yield from pieces


@given(messages(), st.data())
def test_any_cut_of_the_stream_gives_the_same_message(parts: list[Part], data: st.DataObject) -> None:
    pieces = [piece for part in wire_of(parts) for piece in pieces_of(part, data)]
    groups: list[list[dict[str, Any]]] = [[]]
    for piece in pieces:
        if data.draw(st.booleans()):
            groups.append([])
        groups[-1].append(piece)
    chunks = [chunk(*group) for group in groups] + [chunk(finish="STOP")]
    stream = b"".join(b"data: " + orjson.dumps(one) + b"\r\n\r\n" for one in chunks)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    parser = SseParser()
    events = [
        event
        for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)
        for event in parser.feed(stream[start:end])
    ]
    reply, deltas = read(*[orjson.loads(event.data) for event in events])
    assert list(reply.message.parts) == parts
    for index, part in enumerate(parts):
        said = "".join(one.text for one in deltas if not isinstance(one, ToolCallDelta) and one.index == index)
        assert said == (part.text if isinstance(part, Text | Reasoning) else "")
