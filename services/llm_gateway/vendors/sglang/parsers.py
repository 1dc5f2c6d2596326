"""Marks at which a reply may begin to be a tool call, by the names of SGLang's parsers. Pure.

Text is streamed up to there; the rest waits for the server's parser, which reads whole replies alone. Of a parser that
is not here nothing is known, and the whole reply waits.
"""

from collections.abc import Mapping

from services.llm_gateway.vendors.text.tool_text import OPEN, certain

_DEEPSEEK = "<\uff5ctool\u2581calls\u2581begin\uff5c>"
MARKS: Mapping[str, str] = {
    "deepseekv3": _DEEPSEEK,
    "deepseekv31": _DEEPSEEK,
    "glm": OPEN,
    "glm45": OPEN,
    "glm47": OPEN,
    "hermes": OPEN,
    "kimi_k2": "<|tool_calls_section_begin|>",
    "mistral": "[TOOL_CALLS]",
    "qwen": OPEN,
    "qwen25": OPEN,
    "qwen3_coder": OPEN,
}


class Held:
    """The text of one reply: the part that may be streamed, and all of it."""

    def __init__(self, mark: str | None) -> None:
        self._mark = mark
        self._waiting = ""
        self._stopped = mark is None
        self.text = ""
        self.streamed = ""

    def feed(self, text: str) -> str:
        """Returns the part of it that is certainly no call."""
        self.text += text
        if self._stopped or self._mark is None:
            return ""
        before, mark, _ = (self._waiting + text).partition(self._mark)
        self._stopped = bool(mark)
        free, self._waiting = (before, "") if mark else certain(before, self._mark)
        self.streamed += free
        return free

    def rest(self, parsed: str) -> str:
        """Returns the part of the text, as the parser left it, that has not been streamed."""
        return parsed[len(self.streamed) :] if parsed.startswith(self.streamed) else ""
