"""The reader of an answer in Anthropic's dialect while it passes: its text and its usage. Pure.

The answer goes on as it came; parts that cannot be read are left out.
"""

from collections.abc import Mapping
from typing import Any

import orjson

from services.llm_gateway.core.chat import Usage
from services.llm_gateway.core.reply_builder import MOST_CHARACTERS, valid_usage
from services.llm_gateway.core.sse import SseParser
from services.llm_gateway.vendors.anthropic.replies import usage_of

_MOST_OF_BODY = 32 * 1024 * 1024


class AnswerReader:
    """The reader of one answer, whole or streamed. It is fed the chunks and closed; `ended` says whether the answer
    did.
    """

    def __init__(self, content_type: str) -> None:
        self.model = ""
        self.ended = False
        self._events = SseParser() if content_type.startswith(SseParser.media_type) else None
        self._body: bytearray | None = bytearray() if content_type.startswith("application/json") else None
        self._texts: list[str] = []
        self._size = 0
        self._usage: dict[str, Any] = {}

    @property
    def text(self) -> str:
        """Returns the model's text; empty where the answer is not complete."""
        return "".join(self._texts) if self.ended and self._size <= MOST_CHARACTERS else ""

    @property
    def usage(self) -> Usage | None:
        """Returns the usage as the vendor counts it, up to now."""
        try:
            return valid_usage(usage_of(self._usage)) if self._usage else None
        except (TypeError, AttributeError):
            return None

    def feed(self, chunk: bytes) -> None:
        """Reads more of the body."""
        if self._body is not None:
            if len(self._body) <= _MOST_OF_BODY:
                self._body += chunk
        elif self._events is not None:
            try:
                events = self._events.feed(chunk)
            except ValueError:
                # Too long to be read; it goes on as it is.
                self._events = None
                return
            for event in events:
                self._take(_object(event.data))

    def close(self) -> None:
        """Reads the end of the body."""
        if self._body is not None and len(self._body) <= _MOST_OF_BODY:
            message = _object(bytes(self._body))
            self._begin(message)
            content = message.get("content")
            for block in content if isinstance(content, list) else ():
                self._say(block)
            self.ended = message.get("type") == "message"
        elif self._events is not None:
            for event in self._events.close():
                self._take(_object(event.data))

    def _take(self, event: Mapping[str, Any]) -> None:
        match event:
            case {"type": "message_start", "message": dict(message)}:
                self._begin(message)
            case {"type": "content_block_start", "content_block": block}:
                self._say(block)
            case {"type": "content_block_delta", "delta": {"type": "text_delta", "text": text}}:
                self._say({"type": "text", "text": text})
            case {"type": "message_delta"}:
                self._count(event.get("usage"))
            case {"type": "message_stop"}:
                self.ended = True

    def _begin(self, message: Mapping[str, Any]) -> None:
        model = message.get("model")
        self.model = model if isinstance(model, str) else ""
        self._count(message.get("usage"))

    def _count(self, usage: Any) -> None:
        if isinstance(usage, dict):
            self._usage |= {name: value for name, value in usage.items() if value is not None}

    def _say(self, block: Any) -> None:
        match block:
            case {"type": "text", "text": str(text)}:
                self._size += len(text)
                if self._size <= MOST_CHARACTERS:
                    self._texts.append(text)


def _object(data: bytes) -> Mapping[str, Any]:
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        return {}
    return value if isinstance(value, dict) else {}
