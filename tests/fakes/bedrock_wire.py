"""The bytes of Bedrock's APIs, made from a script's `Reply`: Converse whole and as a binary event stream, lists of
models, embeddings, refusals.
"""

import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson

from tests.fakes.bedrock_rules import redacted
from tests.fakes.openai_wire import vector_of
from tests.fakes.script import Reply, RequestView, ToolCall, Usage, words
from tests.fakes.server import JSON_HEADERS, HttpReply

STREAM_HEADERS = {"content-type": "application/vnd.amazon.eventstream"}
ERRORS: Mapping[str, tuple[int, str, str]] = {
    "authentication": (403, "UnrecognizedClientException", "The security token included in the request is invalid."),
    "rate_limit": (429, "ThrottlingException", "Too many requests, please wait before trying again."),
    "quota": (400, "ServiceQuotaExceededException", "Your request exceeds the service quota for your account."),
    "context_overflow": (
        400,
        "ValidationException",
        "The model returned the following errors: prompt is too long: 208310 tokens > 200000 maximum",
    ),
    "bad_request": (400, "ValidationException", "Malformed input request, please reformat your input and try again."),
    "model_not_found": (400, "ValidationException", "The provided model identifier is invalid."),
    "server": (500, "InternalServerException", "The system encountered an unexpected error during processing."),
    "overloaded": (503, "ServiceUnavailableException", "Bedrock is unable to process your request."),
}


def error(kind: str, message: str | None = None, status: int | None = None) -> HttpReply:
    """A refusal: its kind is in a header."""
    default_status, name, text = ERRORS[kind]
    kinds = {"x-amzn-errortype": f"{name}:http://internal.amazon.com/coral/", "x-amzn-requestid": "req-0"}
    return HttpReply(status or default_status, {**JSON_HEADERS, **kinds}, orjson.dumps({"message": message or text}))


def frame(headers: Mapping[str, str], payload: bytes) -> bytes:
    """One message of the event stream: lengths, headers of type string, and two check sums."""
    packed = b"".join(
        struct.pack("!B", len(name)) + name.encode() + struct.pack("!BH", 7, len(value.encode())) + value.encode()
        for name, value in headers.items()
    )
    prelude = struct.pack("!II", 16 + len(packed) + len(payload), len(packed))
    begun = prelude + struct.pack("!I", zlib.crc32(prelude)) + packed + payload
    return begun + struct.pack("!I", zlib.crc32(begun))


def event(name: str, said: Mapping[str, Any]) -> bytes:
    """An event, padded as AWS pads them."""
    headers = {":event-type": name, ":content-type": "application/json", ":message-type": "event"}
    return frame(headers, orjson.dumps({**said, "p": "abcdefgh"}))


def exception(name: str, message: str) -> bytes:
    """An exception in mid-stream."""
    headers = {":exception-type": name, ":content-type": "application/json", ":message-type": "exception"}
    return frame(headers, orjson.dumps({"message": message}))


def message(reply: Reply, seen: RequestView, number: int, usage: Usage) -> HttpReply:
    """The answer to Converse and ConverseStream; `number` makes ids unique within one server."""
    maker = _Message(reply, number, usage)
    headers = {"x-amzn-requestid": f"req-{number}", **reply.headers}
    if not seen.stream:
        return HttpReply(200, {**JSON_HEADERS, **headers}, orjson.dumps(maker.whole()))
    broken = exception("modelStreamErrorException", reply.message or "The model stopped.")
    return HttpReply(200, {**STREAM_HEADERS, **headers}, frames=list(maker.frames()), error_frame=broken)


class _Message:
    """One reply, whole or as frames."""

    def __init__(self, reply: Reply, number: int, usage: Usage) -> None:
        self.reply = reply
        self.number = number
        self.stop = reply.finish or ("tool_use" if reply.calls else "end_turn")
        self.usage = {
            "inputTokens": usage.input,
            "outputTokens": usage.output,
            "totalTokens": usage.input + usage.output + usage.cached + usage.cache_write,
            "cacheReadInputTokens": usage.cached,
            "cacheWriteInputTokens": usage.cache_write,
        }

    def whole(self) -> dict[str, Any]:
        content = [block for block, _, _ in self._blocks()]
        output = {"message": {"role": "assistant", "content": content}}
        return {"output": output, "stopReason": self.stop, "usage": self.usage, "metrics": {"latencyMs": 1}}

    def frames(self) -> Iterator[bytes]:
        yield event("messageStart", {"role": "assistant"})
        for index, (_, start, deltas) in enumerate(self._blocks()):
            if start:
                yield event("contentBlockStart", {"contentBlockIndex": index, "start": start})
            for delta in deltas:
                yield event("contentBlockDelta", {"contentBlockIndex": index, "delta": delta})
            yield event("contentBlockStop", {"contentBlockIndex": index})
        yield event("messageStop", {"stopReason": self.stop})
        yield event("metadata", {"usage": self.usage, "metrics": {"latencyMs": 1}})

    def _blocks(self) -> Iterator[tuple[dict[str, Any], dict[str, Any], list[dict[str, Any]]]]:
        """Each block whole, how it starts in a stream, and the deltas that make it."""
        reply = self.reply
        if reply.reasoning:
            deltas = [{"reasoningContent": {"text": piece}} for piece in words(reply.reasoning)]
            deltas.append({"reasoningContent": {"signature": reply.signature}})
            whole = {"text": reply.reasoning, "signature": reply.signature}
            yield {"reasoningContent": {"reasoningText": whole}}, {}, deltas
        if reply.redacted:
            block = {"reasoningContent": {"redactedContent": redacted(reply)}}
            yield block, {}, [block]
        if text := reply.whole_text():
            yield {"text": text}, {}, [{"text": piece} for piece in reply.pieces()]
        for index, call in enumerate(reply.calls):
            start = {"toolUseId": call.id or f"tooluse_fake{self.number}_{index}", "name": call.name}
            pieces = [{"toolUse": {"input": piece}} for piece in self._pieces(call)]
            yield {"toolUse": {**start, "input": dict(call.arguments)}}, {"toolUse": start}, pieces

    def _pieces(self, call: ToolCall) -> Iterator[str]:
        raw = call.raw_arguments
        text = raw if raw is not None else orjson.dumps(dict(call.arguments)).decode()
        for start in range(0, len(text), self.reply.argument_chunk):
            yield text[start : start + self.reply.argument_chunk]


def counted(tokens: int) -> HttpReply:
    """The answer to CountTokens."""
    return HttpReply(200, JSON_HEADERS, orjson.dumps({"inputTokens": tokens}))


def embeddings(model: str, body: Mapping[str, Any]) -> HttpReply:
    """The answer of InvokeModel, of Titan for one text and of Cohere for several."""
    texts = body.get("texts") or [body.get("inputText", "")]
    size = body.get("output_dimension") or body.get("dimensions") or (1536 if "text-v1" in model else 1024)
    vectors = [vector_of(text, size) for text in texts]
    tokens = sum(max(1, len(text) // 4) for text in texts)
    headers = {**JSON_HEADERS, "x-amzn-bedrock-input-token-count": str(tokens)}
    if "texts" in body:
        answer: dict[str, Any] = {"id": "e", "texts": texts, "embeddings": {"float": vectors}}
    else:
        answer = {"embedding": vectors[0], "inputTextTokenCount": tokens}
    return HttpReply(200, headers, orjson.dumps(answer))


def foundation_models(models: Mapping[str, Mapping[str, Any]]) -> HttpReply:
    """The answer to ListFoundationModels."""
    arn = "arn:aws:bedrock:us-east-1::foundation-model"
    summaries = [{"modelArn": f"{arn}/{name}", "modelId": name, **said} for name, said in models.items()]
    return HttpReply(200, JSON_HEADERS, orjson.dumps({"modelSummaries": summaries}))


def inference_profiles(profiles: Sequence[tuple[str, str, str]], query: Mapping[str, str], page: int) -> HttpReply:
    """The answer to ListInferenceProfiles, in pages: (id, type, id of its model)."""
    chosen = [one for one in profiles if one[1] == query.get("type", "SYSTEM_DEFINED")]
    start = int(query.get("nextToken", "t+0").partition("+")[2])
    size = min(page, int(query.get("maxResults", 100)))
    summaries = [
        {
            "inferenceProfileId": name,
            "inferenceProfileName": f"Profile {name}",
            "inferenceProfileArn": f"arn:aws:bedrock:us-east-1:123456789012:inference-profile/{name}",
            "models": [{"modelArn": f"arn:aws:bedrock:us-east-1::foundation-model/{model}"}],
            "status": "ACTIVE",
            "type": kind,
        }
        for name, kind, model in chosen[start : start + size]
    ]
    answer: dict[str, Any] = {"inferenceProfileSummaries": summaries}
    if start + size < len(chosen):
        answer["nextToken"] = f"t+{start + size}"
    return HttpReply(200, JSON_HEADERS, orjson.dumps(answer))
