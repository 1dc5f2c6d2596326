"""The neutral chat model: what a conversation with any model is, free of every vendor's wire format.

Pure data. `loci.llm.v1` is its form on our wire (calls/convert.py), each vendor's translate.py makes its form on
the vendor's.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, TypeAlias


class Role(Enum):
    """The speaker of a message. A TOOL message holds tool results only."""

    SYSTEM = auto()
    USER = auto()
    ASSISTANT = auto()
    TOOL = auto()


@dataclass(frozen=True, slots=True)
class Text:
    """Plain text. `signature` is the provider's, to be sent back unchanged."""

    text: str
    signature: str | None = None


@dataclass(frozen=True, slots=True)
class Image:
    """A picture, by value (`data`, in base64, and `media_type`) or by `url`; `detail` is low, high or auto."""

    data: str = ""
    url: str = ""
    media_type: str = ""
    detail: str | None = None

    @property
    def address(self) -> str:
        """Returns `url`, or an address that holds the picture itself (RFC 2397)."""
        return self.url or f"data:{self.media_type};base64,{self.data}"


@dataclass(frozen=True, slots=True)
class Reasoning:
    """Thoughts in the clear, with the proof of origin that some providers demand back."""

    text: str
    signature: str | None = None


@dataclass(frozen=True, slots=True)
class RedactedReasoning:
    """Thoughts that only the provider can read."""

    data: str


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call the model asks for. `arguments_json` is as the model wrote it: not always JSON."""

    id: str
    name: str
    arguments_json: str


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The answer to the call with that id; content is Text and Image."""

    tool_call_id: str
    content: Sequence[Text | Image]
    is_error: bool = False


Part: TypeAlias = Text | Image | Reasoning | RedactedReasoning | ToolCall | ToolResult


@dataclass(frozen=True, slots=True)
class Message:
    """One message; a generated one has no parts when the model chose to say nothing."""

    role: Role
    parts: Sequence[Part]


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool offered to the model; `parameters_json` is the JSON Schema of its arguments object."""

    name: str
    description: str
    parameters_json: str
    strict: bool = False


class ToolMode(Enum):
    """The choice between calling tools and not, where no tool is named."""

    AUTO = auto()
    REQUIRED = auto()
    NONE = auto()


@dataclass(frozen=True, slots=True)
class ResponseFormat:
    """A reply that is one JSON object: of JSON Schema `schema`, or any where that is None. `strict`: enforce it."""

    schema: Mapping[str, Any] | None = None
    name: str = "reply"
    strict: bool | None = None


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """A request for a generation.

    `tool_choice` is a mode or the name of the tool that must be called. `settings` are the provider's own
    (the `model_settings` object of the REST API). `stall_timeout` is in seconds; None means the gateway's
    setting. `response_format` None: text. `logprobs`, `top_logprobs` (alternatives per token) and `token_ids` are
    wishes that a provider without them ignores. `trace`: keep what is sent and what comes. `preview`: send nothing, see
    Calls.preview.
    `fallbacks` are handles to try in order where `handle` cannot answer. `websocket`: one connection for all calls that
    share `run_key`, where the provider offers that. Requests that share `cache_key` begin alike, which helps providers
    that cache prompts; both keys are opaque, "" for none. `stop`: see core/stops.py. `fills_defaults`: see
    core/default_settings.py.
    """

    handle: str
    messages: Sequence[Message]
    tools: Sequence[ToolSpec] = ()
    tool_choice: ToolMode | str = ToolMode.AUTO
    parallel_tool_calls: bool | None = None
    temperature: float | None = None
    max_output_tokens: int | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    stall_timeout: float | None = None
    response_format: ResponseFormat | None = None
    logprobs: bool = False
    top_logprobs: int | None = None
    token_ids: bool = False
    trace: bool = False
    preview: bool = False
    fallbacks: Sequence[str] = ()
    websocket: bool = False
    run_key: str = ""
    cache_key: str = ""
    stop: Sequence[str] = ()
    fills_defaults: bool = False

    @property
    def forces_a_call(self) -> bool:
        """Returns whether the model may not reply without calling a tool."""
        return bool(self.tools) and (isinstance(self.tool_choice, str) or self.tool_choice is ToolMode.REQUIRED)


class FinishReason(Enum):
    """The reason why the model stopped; UNKNOWN where the provider did not say."""

    UNKNOWN = auto()
    STOP = auto()
    TOOL_CALLS = auto()
    LENGTH = auto()
    CONTENT_FILTER = auto()


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one generation. Prompt tokens include the cached ones, completion tokens the reasoning.

    None: not reported. `estimated`: the figures are ours, because the provider gave none.
    """

    prompt_tokens: int
    completion_tokens: int
    cached_input_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None
    estimated: bool = False


@dataclass(frozen=True, slots=True)
class FailedTry:
    """A handle that could not answer, and the reason and text of its error."""

    handle: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Generation:
    """A complete reply.

    `handle` is the one that answered, `cost` what it cost in billionths of a US dollar (None: no price is known),
    `failed_tries` are the handles tried before, and `tool_problems` (name, why) tells of tools that were left out; the
    gateway's calls fill them in (calls/service.py), no provider does.
    `logprobs_json` is OpenAI's object, `token_logprobs_json` [[log probability, token id or null, token], ...],
    `trace_json` what trace.py makes; each is empty where it was not asked for or not given.
    """

    message: Message
    finish_reason: FinishReason
    usage: Usage
    provider_response_id: str = ""
    provider_model: str = ""
    logprobs_json: str = ""
    token_ids: Sequence[int] = ()
    token_logprobs_json: str = ""
    trace_json: str = ""
    handle: str = ""
    cost: int | None = None
    failed_tries: Sequence[FailedTry] = ()
    tool_problems: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True, slots=True)
class TextDelta:
    """More text of the part at `index` of the final message."""

    index: int
    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """More thoughts of the part at `index`."""

    index: int
    text: str


@dataclass(frozen=True, slots=True)
class ToolCallDelta:
    """More of the tool call at `index`; `id` and `name` come with every delta."""

    index: int
    id: str
    name: str
    arguments: str


Delta: TypeAlias = TextDelta | ReasoningDelta | ToolCallDelta


@dataclass(frozen=True, slots=True)
class Completed:
    """The end of a generation: exactly once, and last."""

    generation: Generation


Event: TypeAlias = Delta | Completed


@dataclass(frozen=True, slots=True)
class Embeddings:
    """One vector per text, in order, as the provider gave them. `prompt_tokens` is 0 where it counts none."""

    vectors: Sequence[Sequence[float]]
    prompt_tokens: int = 0
