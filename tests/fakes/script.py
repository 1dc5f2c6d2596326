"""The script of a fake provider's answers, in words that are the same for every vendor.

A reply is chosen in this order: the queue (each scripted reply serves one request), the first rule that
matches, the function given to `answer`, the default. All of it except the function and gates has a JSON form for other
processes: the field names of the dataclasses below, errors as {"error": "rate_limit", ...}.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from tests.fakes.gate import Gate

ErrorKind = Literal[
    "authentication",
    "rate_limit",
    "quota",
    "context_overflow",
    "bad_request",
    "model_not_found",
    "server",
    "overloaded",
]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call the model makes. `raw_arguments` is sent as it stands instead of the JSON of `arguments`."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    id: str = ""
    raw_arguments: str | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts to report; `input` includes cached tokens on the OpenAI wire, excludes them on
    Anthropic's.
    """

    input: int
    output: int
    cached: int = 0
    cache_write: int = 0
    reasoning: int = 0


@dataclass(frozen=True, slots=True)
class Reply:
    """One scripted answer. With no field set it is an empty assistant message.

    Streaming: text and reasoning are cut into words (or `deltas` as given), arguments into pieces of
    `argument_chunk` characters. Times are seconds. Faults: `hang` never sends a byte, `stall_after` and
    `truncate_after` stop after that many stream frames (keeping or closing the connection; for a blocking
    reply the body is cut), `end_after` ends the HTTP body properly after that many frames but without the
    protocol's own end, `error_after` sends the vendor's error event in mid-stream. A `gate` holds the reply back until
    it is opened, after `gate_after` stream frames; who leaves meanwhile is "gone".
    """

    text: str = ""
    calls: Sequence[ToolCall] = ()
    reasoning: str = ""
    signature: str = "sig-of-the-fake"
    redacted: str = ""
    refusal: str = ""
    deltas: Sequence[str] | None = None
    argument_chunk: int = 12
    finish: str | None = None
    usage: Usage | None = None
    send_usage: bool = True
    reasoning_field: str = "reasoning_content"

    first_delay: float = 0.0
    delta_delay: float = 0.0
    gate: Gate | None = None
    gate_after: int = 0
    line_end: str = "\n"
    keepalives: bool = False
    gzip: bool = False

    error: ErrorKind | None = None
    status: int | None = None
    message: str | None = None
    retry_after: float | None = None
    headers: Mapping[str, str] = field(default_factory=dict)

    hang: bool = False
    stall_after: int | None = None
    truncate_after: int | None = None
    end_after: int | None = None
    error_after: int | None = None
    raw_body: str | None = None
    content_type: str = "text/html"

    def pieces(self) -> Sequence[str]:
        """The pieces in which the text is streamed."""
        return words(self.text) if self.deltas is None else self.deltas

    def whole_text(self) -> str:
        """The text of a blocking reply: equal to the pieces joined."""
        return self.text if self.deltas is None else "".join(self.deltas)


@dataclass(frozen=True, slots=True)
class RequestView:
    """A request as rules and functions see it, the same for every vendor.

    `step` counts the rounds of tool results since the last user message: 0 for a turn's first model call.
    `question` is the text of that user message. `route` is chat, count, embeddings or
    models.
    """

    model: str
    last_role: str
    last_text: str
    step: int
    stream: bool
    tools: tuple[str, ...]
    body: Mapping[str, Any]
    route: str = "chat"
    question: str = ""


@dataclass(frozen=True, slots=True)
class Rule:
    """Answers with `reply` whenever everything that is set matches; it is not used up.

    `contains` is looked for in the last message and in the turn's question. The routes beside the chat listen
    to rules alone, and only to those that name them: a queue is the chat's.
    """

    reply: Reply
    contains: str | None = None
    step: int | None = None
    model: str | None = None
    route: str = "chat"

    def matches(self, seen: RequestView) -> bool:
        return (
            self.route == seen.route
            and (self.contains is None or self.contains in seen.last_text or self.contains in seen.question)
            and (self.step is None or self.step == seen.step)
            and (self.model is None or self.model == seen.model)
        )


Answer = Callable[[RequestView], Reply]
DEFAULT_REPLY = Reply(text="Hello from the fake model.")


@dataclass
class Script:
    """The queue, the rules, the function and the default of one fake server."""

    queue: deque[Reply] = field(default_factory=deque)
    rules: list[Rule] = field(default_factory=list)
    answer: Answer | None = None
    default: Reply = DEFAULT_REPLY

    def choose(self, seen: RequestView) -> Reply:
        if self.queue and seen.route == "chat":
            return self.queue.popleft()
        for rule in self.rules:
            if rule.matches(seen):
                return rule.reply
        return self.answer(seen) if self.answer and seen.route == "chat" else self.default

    def clear(self) -> None:
        self.queue.clear()
        self.rules.clear()
        self.answer, self.default = None, DEFAULT_REPLY

    def load(self, document: Mapping[str, Any]) -> None:
        """Take `replies` (appended to the queue), `rules`, `steps` and `default` (each replaced) from JSON
        data.
        """
        self.queue.extend(reply_from(item) for item in document.get("replies", ()))
        if "rules" in document:
            self.rules = [rule_from(item) for item in document["rules"]]
        if "steps" in document:
            self.rules = by_step(*(reply_from(item) for item in document["steps"]))
        if "default" in document:
            self.default = reply_from(document["default"])


def by_step(*replies: Reply) -> list[Rule]:
    """Rules that answer a turn's n-th model call with the n-th reply, however often the call is repeated."""
    return [Rule(reply, step=number) for number, reply in enumerate(replies)]


def reply_from(document: Mapping[str, Any]) -> Reply:
    """A reply from its JSON form; an unknown field is a ValueError that names the fields there are."""
    known = {item.name for item in fields(Reply)} - {"gate", "gate_after"}
    if unknown := set(document) - known:
        raise ValueError(f"unknown reply fields {sorted(unknown)}; there are {sorted(known)}")
    values = dict(document)
    values["calls"] = tuple(ToolCall(**call) for call in document.get("calls", ()))
    if document.get("usage"):
        values["usage"] = Usage(**document["usage"])
    return Reply(**values)


def rule_from(document: Mapping[str, Any]) -> Rule:
    """A rule from its JSON form: `reply` and any of `contains`, `step`, `model`, `route`."""
    return Rule(**{**document, "reply": reply_from(document["reply"])})


def words(text: str) -> list[str]:
    """Cut after each space, so that the pieces joined are the text."""
    parts = text.split(" ")
    return [part + " " for part in parts[:-1]] + parts[-1:] if text else []
