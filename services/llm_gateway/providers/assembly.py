"""A reply in the making: deltas go in as a provider sends them, the whole message comes out. Pure.

Parts stand in the order of their first appearance; `key` is how the provider's wire tells them apart.
"""

from collections.abc import Hashable
from dataclasses import dataclass, field
from uuid import uuid4

from services.llm_gateway.chat import (
    ChatRequest,
    FinishReason,
    Generation,
    Message,
    Part,
    Reasoning,
    ReasoningDelta,
    RedactedReasoning,
    Role,
    Text,
    TextDelta,
    ToolCall,
    ToolCallDelta,
    Usage,
)
from services.llm_gateway.errors import LlmEmptyResponse
from services.llm_gateway.providers.tokens import ReplyTokens
from services.llm_gateway.providers.trace import Trace
from services.llm_gateway.tokens import estimate


@dataclass(slots=True)
class _Draft:
    index: int
    kind: type[Part]
    pieces: list[str] = field(default_factory=list)
    signature: str | None = None
    id: str = ""
    name: str = ""

    def part(self) -> Part:
        text = "".join(self.pieces)
        if self.kind is ToolCall:
            return ToolCall(self.id, self.name, text or "{}")
        if self.kind is Reasoning:
            return Reasoning(text, self.signature)
        return RedactedReasoning(text) if self.kind is RedactedReasoning else Text(text, self.signature)


class Assembly:
    """One reply. Set `finish`, `usage`, `response_id` and `model` as they become known."""

    def __init__(self) -> None:
        self._drafts: dict[Hashable, _Draft] = {}
        self.finish: FinishReason | None = None
        self.usage: Usage | None = None
        self.tokens = ReplyTokens()
        self.response_id = ""
        self.model = ""

    def add_text(self, key: Hashable, text: str) -> TextDelta:
        draft = self._draft(key, Text)
        draft.pieces.append(text)
        return TextDelta(draft.index, text)

    def add_reasoning(self, key: Hashable, text: str) -> ReasoningDelta:
        draft = self._draft(key, Reasoning)
        draft.pieces.append(text)
        return ReasoningDelta(draft.index, text)

    def add_redacted(self, key: Hashable, data: str) -> None:
        self._draft(key, RedactedReasoning).pieces.append(data)

    def sign(self, key: Hashable, signature: str) -> None:
        """Add to the signature of the thoughts at `key`."""
        draft = self._draft(key, Reasoning)
        draft.signature = (draft.signature or "") + signature

    def begin_call(self, key: Hashable, id: str, name: str) -> ToolCallDelta:
        """A new tool call; a provider that gives no id gets one from us."""
        draft = self._draft(key, ToolCall)
        draft.id, draft.name = id or f"call_{uuid4().hex[:24]}", name
        return ToolCallDelta(draft.index, draft.id, name, "")

    def add_arguments(self, key: Hashable, piece: str) -> ToolCallDelta:
        draft = self._draft(key, ToolCall)
        draft.pieces.append(piece)
        return ToolCallDelta(draft.index, draft.id, draft.name, piece)

    @property
    def is_empty(self) -> bool:
        """Whether nothing came yet."""
        return not self._drafts

    def has_pieces(self, key: Hashable) -> bool:
        """Whether anything of the text or arguments at `key` came."""
        return key in self._drafts and any(self._drafts[key].pieces)

    def began(self, key: Hashable) -> bool:
        """Whether there is a part at `key`."""
        return key in self._drafts

    def call_id(self, key: Hashable) -> str | None:
        """The id of the call at `key`, None before it began."""
        draft = self._drafts.get(key)
        return None if draft is None else draft.id

    def generation(
        self, request: ChatRequest, provider: str, prompt_size: int, trace: Trace | None = None
    ) -> Generation:
        """The whole reply; `prompt_size` is the request's length in bytes, for the estimate where none is
        given.

        Raises LlmEmptyResponse when nothing came and the model did not say that it had nothing to say.
        """
        parts = [draft.part() for draft in self._drafts.values()]
        finish = self.finish or FinishReason.UNKNOWN
        if not parts and finish is not FinishReason.STOP:
            raise LlmEmptyResponse(
                f"{provider} answered without any content (finish reason {finish.name.lower()}). Try again, or "
                "raise max_output_tokens if the model thinks before it answers.",
                provider=provider,
                handle=request.handle,
            )
        if finish in (FinishReason.STOP, FinishReason.UNKNOWN) and any(isinstance(p, ToolCall) for p in parts):
            finish = FinishReason.TOOL_CALLS
        usage = self.usage or self._estimated(prompt_size)
        tokens = self.tokens
        return Generation(
            Message(Role.ASSISTANT, parts),
            finish,
            usage,
            self.response_id,
            self.model,
            logprobs_json=tokens.logprobs_json() if request.logprobs else "",
            token_ids=tokens.ids if request.token_ids else (),
            token_logprobs_json=tokens.token_logprobs_json() if request.token_ids else "",
            trace_json="" if trace is None else trace.text(),
        )

    def _estimated(self, prompt_size: int) -> Usage:
        written = sum(len(piece) for draft in self._drafts.values() for piece in draft.pieces)
        return Usage(estimate(prompt_size), estimate(written), estimated=True)

    def _draft(self, key: Hashable, kind: type[Part]) -> _Draft:
        draft = self._drafts.get(key)
        if draft is None:
            draft = self._drafts[key] = _Draft(len(self._drafts), kind)
        return draft
