"""The builder of a reply: deltas go in as a provider sends them, the whole message comes out. Pure.

Parts stand in the order of their first appearance; `key` is how the provider's wire tells them apart.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import index
from typing import Any
from uuid import uuid4

import orjson

from services.common.core.json_text import well_formed, well_formed_json, well_formed_value
from services.llm_gateway.core.chat import (
    ChatRequest,
    Delta,
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
from services.llm_gateway.core.errors import LlmEmptyResponse
from services.llm_gateway.core.token_estimates import estimate
from services.llm_gateway.core.trace import Trace


class ReplyTokens:
    """Gathers OpenAI's `logprobs` objects, whole or in the pieces of a stream, and token ids."""

    def __init__(self) -> None:
        self.ids: list[int] = []
        self._logprobs: dict[str, Any] | None = None

    def add_logprobs(self, piece: Mapping[str, Any]) -> None:
        """Adds a piece: its lists are appended, other fields replace earlier ones."""
        if self._logprobs is None:
            self._logprobs = {}
        for name, value in piece.items():
            known = self._logprobs.get(name)
            if isinstance(known, list) and isinstance(value, list):
                known += value
            else:
                # A list of our own, which grows in place.
                self._logprobs[name] = [*value] if isinstance(value, list) else value

    def logprobs_json(self) -> str:
        """Returns the object as it came; empty without one."""
        return "" if self._logprobs is None else _json(self._logprobs)

    def token_logprobs_json(self) -> str:
        """Returns [[log probability, id or null, token], ...]; empty where no log probabilities came."""
        content = (self._logprobs or {}).get("content")
        if not content:
            return ""
        # Ids that do not stand beside the tokens one by one cannot be told to belong to them.
        ids: list[int | None] = [*self.ids] if len(self.ids) == len(content) else [None] * len(content)
        rows = [[item.get("logprob"), id, item.get("token")] for item, id in zip(content, ids, strict=True)]
        return _json(rows)


def _json(value: Any) -> str:
    try:
        return orjson.dumps(value).decode()
    except orjson.JSONEncodeError:
        # A token may be half a character.
        return orjson.dumps(well_formed_value(value)).decode()


# Of one reply: what of it can be sent on in one message (32 MiB), whatever the script.
MOST_CHARACTERS = 8_000_000
# As which a part is counted, so that there are not millions of them.
_SIZE_OF_PART = 100
_LONGEST_NAME = 500
_MOST_TOKENS = 2**31


@dataclass(slots=True)
class _Draft:
    index: int
    kind: type[Part]
    pieces: list[str] = field(default_factory=list)
    signature: str | None = None
    id: str = ""
    name: str = ""
    # The first half of a character at the end of what came: the second may follow.
    half: str = ""

    def part(self) -> Part:
        text = "".join(self.pieces)
        if self.kind is ToolCall:
            return ToolCall(self.id, self.name, well_formed_json(text) or "{}")
        if self.kind is Reasoning:
            return Reasoning(text, self.signature)
        return RedactedReasoning(text) if self.kind is RedactedReasoning else Text(text, self.signature)

    def delta(self, piece: str) -> Delta:
        """Returns what the piece adds to the part."""
        if self.kind is ToolCall:
            return ToolCallDelta(self.index, self.id, self.name, piece)
        return ReasoningDelta(self.index, piece) if self.kind is Reasoning else TextDelta(self.index, piece)


class ReplyBuilder:
    """The builder of one reply. Readers set `finish`, `usage`, `response_id` and `model` as they become known."""

    def __init__(self) -> None:
        self._drafts: dict[Hashable, _Draft] = {}
        self.finish: FinishReason | None = None
        self.usage: Usage | None = None
        self.tokens = ReplyTokens()
        self.response_id = ""
        self.model = ""
        self._size = 0
        self._ids: set[str] = set()

    def add_text(self, key: Hashable, text: str) -> TextDelta:
        draft = self._draft(key, Text)
        draft.pieces.append(text := self._joined(draft, text))
        return TextDelta(draft.index, text)

    def add_reasoning(self, key: Hashable, text: str) -> ReasoningDelta:
        draft = self._draft(key, Reasoning)
        draft.pieces.append(text := self._joined(draft, text))
        return ReasoningDelta(draft.index, text)

    def add_redacted(self, key: Hashable, data: str) -> None:
        self._draft(key, RedactedReasoning).pieces.append(well_formed(self._storable(data)))

    def sign(self, key: Hashable, signature: str) -> None:
        """Adds to the signature of the thoughts at `key`."""
        draft = self._draft(key, Reasoning)
        draft.signature = (draft.signature or "") + well_formed(self._storable(signature))

    def begin_call(self, key: Hashable, id: str, name: str) -> ToolCallDelta:
        """Begins a tool call; a call without an id, or with that of another, gets one from us."""
        draft = self._draft(key, ToolCall)
        id = well_formed(self._storable(id))
        draft.id = id if id and id not in self._ids else f"call_{uuid4().hex[:24]}"
        draft.name = well_formed(self._storable(name))
        self._ids.add(draft.id)
        return ToolCallDelta(draft.index, draft.id, draft.name, "")

    def add_arguments(self, key: Hashable, piece: str) -> ToolCallDelta:
        draft = self._draft(key, ToolCall)
        draft.pieces.append(piece := self._joined(draft, piece))
        return ToolCallDelta(draft.index, draft.id, draft.name, piece)

    def turn_into(self, key: Hashable, kind: type[Text] | type[Reasoning]) -> None:
        """Makes text of thoughts at `key`, or thoughts of text: only the whole told which they were."""
        if (draft := self._drafts.get(key)) is not None:
            draft.kind = kind
            if kind is Reasoning:
                draft.pieces = ["".join(draft.pieces).strip()]

    @property
    def is_empty(self) -> bool:
        """Returns whether nothing came yet."""
        return not self._drafts

    def has_pieces(self, key: Hashable) -> bool:
        """Returns whether anything of the text or arguments at `key` came."""
        return key in self._drafts and any(self._drafts[key].pieces)

    def began(self, key: Hashable) -> bool:
        """Returns whether there is a part at `key`."""
        return key in self._drafts

    def call_id(self, key: Hashable) -> str | None:
        """Returns the id of the call at `key`, None before it began."""
        draft = self._drafts.get(key)
        return None if draft is None else draft.id

    def close(self) -> Iterator[Delta]:
        """Yields U+FFFD where the second half of a character did not come."""
        for draft in self._drafts.values():
            if draft.half:
                draft.half = ""
                draft.pieces.append("\ufffd")
                yield draft.delta("\ufffd")

    def generation(
        self, request: ChatRequest, provider: str, prompt_size: int, trace: Trace | None = None
    ) -> Generation:
        """Returns the whole reply; `prompt_size` is the request's length in bytes, for the estimate where none is
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
        usage = valid_usage(self.usage) or self._estimate(prompt_size)
        tokens = self.tokens
        return Generation(
            Message(Role.ASSISTANT, parts),
            finish,
            usage,
            _name_of(self.response_id),
            _name_of(self.model),
            logprobs_json=tokens.logprobs_json() if request.logprobs else "",
            token_ids=_ids(tokens.ids) if request.token_ids else (),
            token_logprobs_json=tokens.token_logprobs_json() if request.token_ids else "",
            trace_json="" if trace is None else trace.text(),
        )

    def _estimate(self, prompt_size: int) -> Usage:
        written = sum(len(piece) for draft in self._drafts.values() for piece in draft.pieces)
        return Usage(estimate(prompt_size), estimate(written), estimated=True)

    def _storable(self, text: str) -> str:
        """Returns the text as it can be kept anywhere: Postgres has no NUL. Raises TypeError where it is none, and
        ValueError where the reply becomes too long.
        """
        if not isinstance(text, str):
            raise TypeError(f"a {type(text).__name__} where a text is expected")
        self._grow(len(text))
        return text.replace("\0", "") if "\0" in text else text

    def _joined(self, draft: _Draft, piece: str) -> str:
        """Returns the piece with the half that waited before it, and without one that has to wait."""
        text = draft.half + self._storable(piece)
        draft.half = ""
        if text.isascii():
            return text
        if "\ud800" <= text[-1] <= "\udbff":
            text, draft.half = text[:-1], text[-1]
        return well_formed(text)

    def _grow(self, size: int) -> None:
        self._size += size
        if self._size > MOST_CHARACTERS:
            raise ValueError(f"a reply of more than {MOST_CHARACTERS:,} characters")

    def _draft(self, key: Hashable, kind: type[Part]) -> _Draft:
        draft = self._drafts.get(key)
        if draft is None:
            self._grow(_SIZE_OF_PART)
            draft = self._drafts[key] = _Draft(len(self._drafts), kind)
        return draft


def valid_usage(usage: Usage | None) -> Usage | None:
    """Returns the usage without details that are no numbers of tokens; None where input or output is none."""
    if usage is None or _tokens(usage.prompt_tokens) is None or _tokens(usage.completion_tokens) is None:
        return None
    return Usage(
        usage.prompt_tokens,
        usage.completion_tokens,
        _tokens(usage.cached_input_tokens),
        _tokens(usage.cache_write_tokens),
        _tokens(usage.reasoning_tokens),
        usage.estimated,
    )


def _ids(ids: Sequence[Any]) -> list[int]:
    """Returns token ids. Raises TypeError and ValueError for others."""
    numbers = list(map(index, ids))
    if numbers and not (min(numbers) >= 0 and max(numbers) < _MOST_TOKENS):
        raise ValueError("a token's id out of range")
    return numbers


def _tokens(value: Any) -> int | None:
    return value if type(value) is int and 0 <= value < _MOST_TOKENS else None


def _name_of(name: Any) -> str:
    """Returns a name or id that the vendor gave the reply or the model; some give numbers."""
    if not isinstance(name, str | int):
        raise TypeError(f"a {type(name).__name__} where a name is expected")
    return well_formed(str(name)[:_LONGEST_NAME].replace("\0", ""))
