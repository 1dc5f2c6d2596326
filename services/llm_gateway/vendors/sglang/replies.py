"""Replies of SGLang's /generate, whole or streamed, as what each adds. Pure.

Every event of a stream repeats all that came before it, unless the server runs with --incremental-streaming-output:
then it holds the new alone. `completion_tokens` counts all, and so tells which it is.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from services.llm_gateway.core.chat import FinishReason, Usage
from services.llm_gateway.core.reply_builder import ReplyBuilder

_FINISH = {"stop": FinishReason.STOP, "length": FinishReason.LENGTH}


class GenerateEvents:
    """Reads the events of one reply into its builder, all but the text, which it gives back."""

    def __init__(self, builder: ReplyBuilder) -> None:
        self._builder = builder
        self._text = ""
        self._ids = self._rows = 0

    def more(self, reply: Mapping[str, Any]) -> str:
        """Returns the text that this event adds."""
        meta = reply.get("meta_info") or {}
        ids, total = reply.get("output_ids") or [], meta.get("completion_tokens")
        is_whole = not self._ids or total is None or len(ids) >= total
        self._take_tokens(ids if not is_whole else ids[self._ids :], meta)
        self._take_end(meta)
        text = reply.get("text") or ""
        added = text[len(self._text) :] if is_whole else text
        self._text += added
        return added

    def _take_tokens(self, ids: Sequence[int], meta: Mapping[str, Any]) -> None:
        tokens = self._builder.tokens
        tokens.ids += ids
        self._ids += len(ids)
        rows, tops = meta.get("output_token_logprobs") or [], meta.get("output_top_logprobs") or []
        # Older servers repeat these even where the text is not repeated.
        total = meta.get("completion_tokens")
        seen = self._rows if total is None or len(rows) >= total else 0
        content = list(_content(rows[seen:], tops[seen:]))
        self._rows += len(content)
        if content:
            tokens.add_logprobs({"content": content})

    def _take_end(self, meta: Mapping[str, Any]) -> None:
        builder = self._builder
        builder.response_id = str(meta.get("id") or builder.response_id)
        if reason := meta.get("finish_reason"):
            builder.finish = _FINISH.get(kind_of(reason), FinishReason.UNKNOWN)
        if meta.get("prompt_tokens") is not None and meta.get("completion_tokens") is not None:
            cached = meta.get("cached_tokens")
            builder.usage = Usage(meta["prompt_tokens"], meta["completion_tokens"], cached_input_tokens=cached)


def kind_of(reason: Any) -> str:
    """Returns the word in a finish reason, an object or the word itself."""
    return str(reason.get("type") if isinstance(reason, Mapping) else reason)


def abort_reason(reply: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Returns the finish reason of a request that the server gave up, None of others."""
    reason = (reply.get("meta_info") or {}).get("finish_reason")
    return reason if isinstance(reason, Mapping) and reason.get("type") == "abort" else None


def _content(rows: Sequence[Any], tops: Sequence[Any]) -> Iterator[dict[str, Any]]:
    for number, row in enumerate(rows):
        others = tops[number] if number < len(tops) else None
        yield {**_token(row), "top_logprobs": [_token(other) for other in others or ()]}


def _token(row: Sequence[Any]) -> dict[str, Any]:
    logprob, _, text = (*row, None)[:3]
    return {"token": text, "logprob": logprob, "bytes": None if text is None else list(text.encode())}
