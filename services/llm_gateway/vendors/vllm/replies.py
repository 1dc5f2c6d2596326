"""Replies of vLLM's /v1/completions as the neutral chat, and its list of models. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from services.llm_gateway.core.chat import ChatRequest, Delta, FinishReason
from services.llm_gateway.core.models import ListedModel
from services.llm_gateway.core.refusals import status_in
from services.llm_gateway.core.reply_builder import ReplyBuilder
from services.llm_gateway.core.reply_reader import ReplyReader
from services.llm_gateway.vendors.openai.replies import usage_of
from services.llm_gateway.vendors.text.rendering import offered_tools
from services.llm_gateway.vendors.text.text_reply import TextReply

_FINISH = {"stop": FinishReason.STOP, "length": FinishReason.LENGTH}


class CompletionReader(ReplyReader):
    """Reads one reply. `opening` is the prompt's."""

    def __init__(self, request: ChatRequest, opening: str) -> None:
        super().__init__(ReplyBuilder())
        self._text = TextReply(self.builder, calls=bool(offered_tools(request)), opening=opening)

    def take_event(self, reply: Mapping[str, Any]) -> Iterator[Delta]:
        """See ReplyReader.take_event."""
        if error := reply.get("error"):
            self.failure = status_in(error), reply
            return
        builder = self.builder
        builder.response_id = builder.response_id or reply.get("id") or ""
        builder.model = builder.model or reply.get("model") or ""
        for choice in (reply.get("choices") or ())[:1]:
            self.began = True
            if text := choice.get("text"):
                yield from self._text.add(text)
            if logprobs := choice.get("logprobs"):
                builder.tokens.add_logprobs({"content": list(_content(logprobs))})
            builder.tokens.ids += choice.get("token_ids") or ()
            if reason := choice.get("finish_reason"):
                builder.finish = _FINISH.get(reason, FinishReason.UNKNOWN)
        if usage := reply.get("usage"):
            builder.usage = usage_of(usage)

    def close(self) -> Iterable[Delta]:
        """See ReplyReader.close."""
        return self._text.end()


def _content(logprobs: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yields the lists of this route, an entry for each token, as the chat route has them."""
    tokens = logprobs.get("tokens") or ()
    others = logprobs.get("top_logprobs") or [None] * len(tokens)
    for token, logprob, top in zip(tokens, logprobs.get("token_logprobs") or (), others, strict=False):
        ranked = sorted((top or {}).items(), key=lambda item: -item[1])
        yield {**_token(token, logprob), "top_logprobs": [_token(*item) for item in ranked]}


def _token(token: str, logprob: float) -> dict[str, Any]:
    return {"token": token, "logprob": logprob, "bytes": list(token.encode())}


def models_in(reply: Any) -> list[ListedModel]:
    """Returns the models of /v1/models. An adapter (LoRA) has its parent's window, and none where that has none: old
    versions and servers in front leave max_model_len out.
    """
    items = [item for item in reply.get("data") or () if item.get("id")] if isinstance(reply, Mapping) else []
    windows = {item["id"]: item.get("max_model_len") for item in items}
    return [
        ListedModel(
            item["id"],
            windows[item["id"]] or windows.get(item.get("parent")),
            base_model=item.get("parent") or "",
        )
        for item in items
    ]
