"""Google's replies, whole or as chunks, as the neutral chat. Pure.

A chunk and a whole reply have the same form. A text runs until something else comes, or a signature ends it; a
signature that belongs to a call, or to nothing, is a RedactedReasoning before it. An unsigned thought is marked as
Google's, so that it goes back to no one else.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from typing import Any

import orjson

from services.llm_gateway.core.chat import Delta, FinishReason, Usage
from services.llm_gateway.core.errors import LlmBadRequest, LlmEmptyResponse
from services.llm_gateway.core.refusals import Refusal
from services.llm_gateway.core.reply_builder import ReplyBuilder
from services.llm_gateway.core.reply_reader import ReplyReader
from services.llm_gateway.vendors.google.contents import GOOGLE
from services.llm_gateway.vendors.shared.origins import with_origin

_FILTERED = frozenset(
    {"SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY", "MODEL_ARMOR"}
    | {"ESCALATION", "PUP_LIMITED_DISABLED"}
)
_FINISH = {"STOP": FinishReason.STOP, "MAX_TOKENS": FinishReason.LENGTH} | dict.fromkeys(
    _FILTERED, FinishReason.CONTENT_FILTER
)
# The model failed at writing its reply; at a second try it mostly succeeds.
_FAILED = frozenset({"MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "MALFORMED_RESPONSE", "TOO_MANY_TOOL_CALLS"})
# More is to come, for the same request with the token that stands beside it.
_CONTINUES = "CONTINUATION"
_TYPES = "type.googleapis.com/google.rpc."


class Reader(ReplyReader):
    """Reads one reply, over all the requests that it takes; `body` is the first's."""

    def __init__(
        self, builder: ReplyBuilder, provider: str, handle: str, body: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(builder)
        self._body = body or {}
        self._provider = provider
        self._handle = handle
        self._parts = 0
        # What is being written, and its key: text, thought or nothing.
        self._run: tuple[str, int] = ("", 0)
        self._answered = False
        self._before: Usage | None = None
        self._usage: Usage | None = None
        self._continuation = ""
        # Google's word for why this request's reply ended, and its sentence.
        self._reason = self._explanation = ""

    @property
    def is_complete(self) -> bool:
        """See ReplyReader.is_complete; of the last request."""
        return bool(self._reason)

    def next_body(self) -> bytes:
        """See ReplyReader.next_body."""
        if not self._continuation:
            return b""
        body = orjson.dumps({**self._body, "continuationToken": self._continuation})
        self._before, self._usage = self.builder.usage, None
        self._reason, self._continuation, self.ended = "", "", False
        return body

    def take_whole(self, reply: Mapping[str, Any]) -> Iterable[Delta]:
        """See ReplyReader.take_whole."""
        deltas = super().take_whole(reply)
        self._reason = self._reason or "FINISH_REASON_UNSPECIFIED"
        return deltas

    def take_event(self, chunk: Mapping[str, Any]) -> Iterator[Delta]:
        """See ReplyReader.take_event. Raises LlmBadRequest for a prompt that is blocked."""
        if error := chunk.get("error"):
            self.failure = status_of(error), chunk
            return
        self._take_envelope(chunk)
        feedback = chunk.get("promptFeedback") or {}
        if reason := feedback.get("blockReason"):
            raise self._block_error(reason, feedback.get("blockReasonMessage") or "")
        for candidate in (chunk.get("candidates") or ())[:1]:
            for part in (candidate.get("content") or {}).get("parts") or ():
                yield from self._take_part(part)
            if result := candidate.get("logprobsResult"):
                self._take_logprobs(result)
            if reason := candidate.get("finishReason"):
                self._take_finish(reason, candidate)
        self.ended = bool(self._reason) and self._usage is not None

    def close(self) -> Iterable[Delta]:
        """See ReplyReader.close. Raises LlmEmptyResponse where the model failed at writing its reply."""
        if self._reason in _FAILED and not self._answered:
            what = f"{self._reason.lower()}{f': {self._explanation}' if self._explanation else ''}"
            raise LlmEmptyResponse(
                f"{self._provider} answered without any content ({what}). Try again.",
                provider=self._provider,
                handle=self._handle,
                retryable=True,
            )
        return ()

    def _take_envelope(self, chunk: Mapping[str, Any]) -> None:
        builder = self.builder
        if not builder.response_id:
            builder.response_id, builder.model = chunk.get("responseId") or "", chunk.get("modelVersion") or ""
        if metadata := chunk.get("usageMetadata"):
            self._usage = usage_of(metadata)
            builder.usage = self._usage if self._before is None else _sum(self._before, self._usage)

    def _take_finish(self, reason: str, candidate: Mapping[str, Any]) -> None:
        self._reason, self._explanation = reason, candidate.get("finishMessage") or ""
        self.builder.finish = _FINISH.get(reason, FinishReason.UNKNOWN)
        if reason == _CONTINUES:
            self._continuation = candidate.get("continuationToken") or ""
            self.builder.finish = FinishReason.LENGTH

    def _take_part(self, part: Mapping[str, Any]) -> Iterator[Delta]:
        signature = part.get("thoughtSignature") or ""
        if call := part.get("functionCall"):
            if signature:
                self._stand_alone(signature)
            key = self._next("call")
            self._end_run()
            self._answered = True
            yield self.builder.begin_call(key, call.get("id") or self._made_id(key), call.get("name") or "")
            yield self.builder.add_arguments(key, orjson.dumps(call.get("args") or {}).decode())
        elif isinstance(text := part.get("text"), str) and (text or signature):
            yield from self._take_thought(text, signature) if part.get("thought") else self._take_text(text, signature)

    def _take_text(self, text: str, signature: str) -> Iterator[Delta]:
        if not text and self._run[0] != "text":
            self._stand_alone(signature)
            return
        key = self._in_run("text")
        if text:
            self._answered = True
            yield self.builder.add_text(key, text)
        if signature:
            self.builder.sign(key, with_origin(GOOGLE, signature))
            self._end_run()

    def _take_thought(self, text: str, signature: str) -> Iterator[Delta]:
        is_new = self._run[0] != "thought"
        key = self._in_run("thought")
        delta = self.builder.add_reasoning(key, text)
        if text:
            yield delta
        if is_new:
            self.builder.sign(key, with_origin(GOOGLE, ""))
        if signature:
            self.builder.sign(key, signature)
            self._end_run()

    def _made_id(self, key: tuple[str, int]) -> str:
        """Returns an id for a call that has none: the same whenever the same reply is read. Gemini 2.5 gives none."""
        response_id = self.builder.response_id
        digest = hashlib.sha256(f"{response_id}:{key[1]}".encode()).hexdigest()
        return f"call_{digest[:24]}" if response_id else ""

    def _stand_alone(self, signature: str) -> None:
        self._end_run()
        self.builder.add_redacted(self._next("signature"), with_origin(GOOGLE, signature))

    def _in_run(self, kind: str) -> tuple[str, int]:
        if self._run[0] != kind:
            self._run = self._next(kind)
        return self._run

    def _end_run(self) -> None:
        self._run = ("", 0)

    def _next(self, kind: str) -> tuple[str, int]:
        self._parts += 1
        return kind, self._parts

    def _take_logprobs(self, result: Mapping[str, Any]) -> None:
        chosen, others = result.get("chosenCandidates") or (), result.get("topCandidates") or ()
        content = [_token(one) for one in chosen]
        for token, top in zip(content, others, strict=False):
            token["top_logprobs"] = [_token(one) for one in top.get("candidates") or ()]
        self.builder.tokens.add_logprobs({"content": content})
        self.builder.tokens.ids += [one["tokenId"] for one in chosen if "tokenId" in one]

    def _block_error(self, reason: str, message: str) -> LlmBadRequest:
        text = f"{reason}: {message}" if message else reason
        return LlmBadRequest(
            f"{self._provider} blocked the prompt ({text}). Change what was written, or its safety_settings.",
            provider=self._provider,
            handle=self._handle,
        )


def _token(one: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a token in OpenAI's form."""
    token = one.get("token") or ""
    return {
        "token": token,
        "logprob": one.get("logProbability", 0.0),
        "bytes": list(token.encode()),
        "top_logprobs": [],
    }


def usage_of(metadata: Mapping[str, Any]) -> Usage:
    """Returns usage in the neutral form: this wire counts thoughts apart, ours counts them as completion."""
    thoughts = metadata.get("thoughtsTokenCount")
    return Usage(
        prompt_tokens=metadata.get("promptTokenCount", 0) + metadata.get("toolUsePromptTokenCount", 0),
        completion_tokens=metadata.get("candidatesTokenCount", 0) + (thoughts or 0),
        cached_input_tokens=metadata.get("cachedContentTokenCount"),
        reasoning_tokens=thoughts,
    )


def _sum(first: Usage, second: Usage) -> Usage:
    values: dict[str, Any] = {}
    for field in fields(Usage):
        one, other = getattr(first, field.name), getattr(second, field.name)
        values[field.name] = other if one is None else one if other is None else one + other
    return Usage(**{**values, "estimated": False})


def status_of(error: Any) -> int:
    """Returns the HTTP status that an error inside a stream would have had."""
    code = error.get("code") if isinstance(error, Mapping) else None
    return code if isinstance(code, int) and 400 <= code < 600 else 500


def read_refusal(status: int, body: Any) -> Refusal:
    """Returns the refusal in a google.rpc.Status; streams that are refused may have it in a list."""
    if isinstance(body, list) and body:
        body = body[0]
    error = body.get("error", body) if isinstance(body, dict) else body
    if not isinstance(error, dict):
        return Refusal(status, str(error or ""))
    details = [detail for detail in error.get("details") or () if isinstance(detail, dict)]
    return Refusal(
        status,
        str(error.get("message") or ""),
        str(error.get("status") or ""),
        "QUOTA_EXHAUSTED" if _is_used_up(details) else _reason(details),
        _retry_delay(details),
    )


def _of_type(details: list[dict[str, Any]], name: str) -> Iterator[dict[str, Any]]:
    return (detail for detail in details if detail.get("@type") == f"{_TYPES}{name}")


def _reason(details: list[dict[str, Any]]) -> str:
    return next((str(detail.get("reason") or "") for detail in _of_type(details, "ErrorInfo")), "")


def _is_used_up(details: list[dict[str, Any]]) -> bool:
    """Returns whether no short wait helps: a quota of a day, or of nothing at all, is no rate of a minute."""
    violations = [
        violation for detail in _of_type(details, "QuotaFailure") for violation in detail.get("violations") or ()
    ]
    return any("PerDay" in str(one.get("quotaId")) or str(one.get("quotaValue")) == "0" for one in violations)


def _retry_delay(details: list[dict[str, Any]]) -> float | None:
    """Returns the seconds of a RetryInfo: "34.5s"."""
    text = next((str(detail.get("retryDelay") or "") for detail in _of_type(details, "RetryInfo")), "")
    number = text.removesuffix("s")
    return float(number) if number.replace(".", "", 1).isdigit() else None
