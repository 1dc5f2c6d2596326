"""The bytes of Google's generateContent and its neighbours, made from a script's `Reply`.

Shapes as of the Gemini API v1beta, Vertex AI v1beta1 and the vendor's SDK (version 3.4).
"""

import base64
import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson

from tests.fakes.script import Reply, RequestView, Usage, words
from tests.fakes.server import JSON_HEADERS, SSE_HEADERS, HttpReply

WINDOW = 1_048_576
_RPC = "type.googleapis.com/google.rpc."
_INVALID_KEY = {"@type": f"{_RPC}ErrorInfo", "reason": "API_KEY_INVALID", "domain": "googleapis.com"}
_OVERFLOW = f"The input token count (1200000) exceeds the maximum number of tokens allowed ({WINDOW})."
_QUOTA = "You exceeded your current quota, please check your plan and billing details."
ERRORS: Mapping[str, tuple[int, str, str]] = {
    "authentication": (400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key."),
    "unauthenticated": (401, "UNAUTHENTICATED", "Request had invalid authentication credentials."),
    "unregistered": (403, "PERMISSION_DENIED", "Method doesn't allow unregistered callers."),
    "rate_limit": (429, "RESOURCE_EXHAUSTED", _QUOTA),
    "quota": (429, "RESOURCE_EXHAUSTED", _QUOTA),
    "context_overflow": (400, "INVALID_ARGUMENT", _OVERFLOW),
    "bad_request": (400, "INVALID_ARGUMENT", "Request contains an invalid argument."),
    "model_not_found": (404, "NOT_FOUND", "models/none is not found for API version v1beta."),
    "server": (500, "INTERNAL", "An internal error has occurred."),
    "overloaded": (503, "UNAVAILABLE", "The model is overloaded. Please try again later."),
}


def error(kind: str, message: str | None = None, status: int | None = None, wait: float | None = None) -> HttpReply:
    """An error reply in the vendor's shape; `wait` is what it asks for in seconds."""
    code, _, _ = ERRORS[kind]
    return HttpReply(status or code, JSON_HEADERS, orjson.dumps(error_body(kind, message, status, wait)))


def error_body(kind: str, message: str | None, status: int | None = None, wait: float | None = None) -> dict[str, Any]:
    code, word, text = ERRORS[kind]
    details: list[dict[str, Any]] = [_INVALID_KEY] if kind == "authentication" else []
    if kind in ("rate_limit", "quota"):
        span = "PerMinute" if kind == "rate_limit" else "PerDay"
        violation = {"quotaId": f"GenerateRequests{span}PerProjectPerModel", "quotaValue": "50"}
        details.append({"@type": f"{_RPC}QuotaFailure", "violations": [violation]})
    if wait is not None:
        details.append({"@type": f"{_RPC}RetryInfo", "retryDelay": f"{wait:g}s"})
    said = {"code": status or code, "message": message or text, "status": word}
    return {"error": {**said, "details": details} if details else said}


def answer(value: Any) -> HttpReply:
    """A reply that is JSON."""
    return HttpReply(200, JSON_HEADERS, orjson.dumps(value))


def content(reply: Reply, seen: RequestView, number: int, usage: Usage) -> HttpReply:
    """The answer to generateContent or streamGenerateContent; `number` makes ids unique within one server."""
    maker = _Content(reply, seen, number, usage)
    if not seen.stream:
        return HttpReply(200, {**JSON_HEADERS, **reply.headers}, orjson.dumps(maker.whole()))
    frames = [frame(chunk, reply.line_end) for chunk in maker.chunks()]
    if reply.keepalives:
        frames.insert(1, b": keep-alive" + 2 * reply.line_end.encode())
    broken = frame(error_body("overloaded", reply.message))
    return HttpReply(200, {**SSE_HEADERS, **reply.headers}, frames=frames, error_frame=broken)


def frame(chunk: Mapping[str, Any], line_end: str = "\n") -> bytes:
    """One server-sent event; this vendor names none."""
    return b"data: " + orjson.dumps(chunk) + 2 * line_end.encode()


def encoded(text: str) -> str:
    """Bytes as this vendor's JSON has them."""
    return base64.b64encode(text.encode()).decode()


class _Content:
    """One reply, whole or as chunks. A model that thought signs its first call, or else the end of its text."""

    def __init__(self, reply: Reply, seen: RequestView, number: int, usage: Usage) -> None:
        self.reply = reply
        self.finish = reply.finish or "STOP"
        self.signature = {"thoughtSignature": encoded(reply.signature)} if reply.reasoning else {}
        self.metadata = usage_metadata(usage)
        self.model = seen.model
        self.id = f"resp-fake{number}"
        self.token = encoded(f"token-{number}")
        self.has_ids = not seen.model.startswith("gemini-2")
        self.number = number

    def whole(self) -> dict[str, Any]:
        reply, parts = self.reply, list(self._thoughts(self.reply.reasoning))
        if text := reply.whole_text():
            parts.append({"text": text} | ({} if reply.calls else self.signature))
        return self._chunk([*parts, *self._calls()], last=True)

    def chunks(self) -> Iterator[dict[str, Any]]:
        for piece in words(self.reply.reasoning):
            yield self._chunk(list(self._thoughts(piece)))
        pieces = self.reply.pieces()
        for piece in pieces:
            yield self._chunk([{"text": piece}])
        for call in self._calls():
            yield self._chunk([call])
        # The signature of a text may come after it, in an empty one.
        tail = [{"text": "", **self.signature}] if pieces and self.signature and not self.reply.calls else []
        yield self._chunk(tail, last=True)

    def _thoughts(self, text: str) -> Iterator[dict[str, Any]]:
        if text:
            yield {"text": text, "thought": True}

    def _calls(self) -> Iterator[dict[str, Any]]:
        for index, call in enumerate(self.reply.calls):
            made = {"name": call.name, "args": dict(call.arguments)}
            if self.has_ids or call.id:
                made["id"] = call.id or f"fake{self.number}_{index}"
            yield {"functionCall": made} | ({} if index else self.signature)

    def _chunk(self, parts: list[dict[str, Any]], *, last: bool = False) -> dict[str, Any]:
        candidate: dict[str, Any] = {"content": {"role": "model"} | ({"parts": parts} if parts else {}), "index": 0}
        if last:
            candidate["finishReason"] = self.finish
            if self.finish == "CONTINUATION":
                candidate["continuationToken"] = self.token
        chunk = {"candidates": [candidate], "modelVersion": self.model, "responseId": self.id}
        return {**chunk, "usageMetadata": self.metadata} if self.reply.send_usage else chunk


def usage_metadata(usage: Usage) -> dict[str, int]:
    """Counts; what is zero is left out, as the vendor does."""
    figures = {
        "promptTokenCount": usage.input,
        "candidatesTokenCount": usage.output - usage.reasoning,
        "thoughtsTokenCount": usage.reasoning,
        "cachedContentTokenCount": usage.cached,
        "totalTokenCount": usage.input + usage.output,
    }
    return {name: figure for name, figure in figures.items() if figure}


def vector(text: str, length: int) -> list[float]:
    """A vector of length 1 that depends on the text alone."""
    seed = hashlib.sha256(text.encode()).digest()
    values = [seed[index % len(seed)] - 127.5 + index % 7 for index in range(length)]
    size = math.sqrt(sum(value * value for value in values))
    return [value / size for value in values]


def models(chat: Sequence[str], embeddings: Sequence[str], query: Mapping[str, str]) -> HttpReply:
    """The answer to GET models: one page of `pageSize` after `pageToken`."""
    listed = [_chat_model(name) for name in chat] + [_embedding_model(name) for name in embeddings]
    return _page("models", listed, query)


def published(names: Sequence[str], query: Mapping[str, str]) -> HttpReply:
    """The answer to GET publishers/google/models of Vertex."""
    listed = [{"name": f"publishers/google/models/{name}", "versionId": "default"} for name in names]
    return _page("publisherModels", listed, query)


def _page(field: str, listed: Sequence[Mapping[str, Any]], query: Mapping[str, str]) -> HttpReply:
    start, size = int(query.get("pageToken", 0)), int(query.get("pageSize", 50))
    more = {"nextPageToken": str(start + size)} if start + size < len(listed) else {}
    return answer({field: list(listed[start : start + size]), **more})


def _chat_model(name: str) -> dict[str, Any]:
    return {
        "name": f"models/{name}",
        "version": "001",
        "displayName": name.replace("-", " ").title(),
        "inputTokenLimit": WINDOW,
        "outputTokenLimit": 65_536,
        "supportedGenerationMethods": ["generateContent", "countTokens"],
        "thinking": True,
    }


def _embedding_model(name: str) -> dict[str, Any]:
    limits = {"inputTokenLimit": 2_048, "outputTokenLimit": 1}
    return {"name": f"models/{name}", "displayName": name, **limits, "supportedGenerationMethods": ["embedContent"]}
