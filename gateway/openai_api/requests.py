"""Chat completions as OpenAI's clients ask for them, with an agent in the place of the model."""

from typing import Annotated, Any, Literal

from pydantic import Field

from gateway.errors.invalid import InvalidRequest
from gateway.rest.body import Body, Int32, Json, LenientBody

# What would change the form of an answer, so that silence would be worse than a refusal; and how to have it.
_REFUSED = {
    "functions": "use `tools`",
    "function_call": "use `tools`",
    "audio": "agents answer in text",
    "logit_bias": "is not available",
    "web_search_options": "attach a tool that searches to the agent",
}


class ChatMessage(Body):
    """A message; what it may hold depends on its role."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[Json] | None = None
    name: str | None = None
    tool_call_id: str | None = None


class Function(Body):
    """A function of the client's."""

    name: Annotated[str, Field(min_length=1, max_length=64)]
    description: str | None = None
    parameters: Json | None = None


class Tool(LenientBody):
    """A tool that the client runs."""

    type: str = "function"
    function: Function | None = None


class StreamOptions(LenientBody):
    """The extras of a stream."""

    include_usage: bool = False


class ChatCompletion(LenientBody):
    """Body of chat.completions.create. `model` is an agent; `max_steps` and `on_busy` are Loci's own, as for messages.

    How the model samples (temperature, max_tokens, seed, reasoning_effort ...) is the agent's setting; what is said of
    it here is passed over, as is what only helps a vendor's bookkeeping (user, store, service_tier ...).
    """

    model: Annotated[str, Field(min_length=1)]
    messages: Annotated[list[ChatMessage], Field(min_length=1)]
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    tools: list[Tool] | None = None
    tool_choice: str | Json | None = None
    parallel_tool_calls: bool | None = None
    n: int | None = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=20)] | None = None
    response_format: Json | None = None
    modalities: list[str] | None = None
    metadata: dict[str, Any] | None = None
    functions: Any = None
    function_call: Any = None
    audio: Any = None
    logit_bias: Any = None
    stop: str | list[str] | None = None
    web_search_options: Any = None
    max_steps: Annotated[Int32, Field(ge=1)] = 50
    on_busy: Literal["wait", "reject", "interrupt"] | None = None

    def check(self) -> None:
        """Raises InvalidRequest for what cannot be had."""
        refused = {name: reason for name, reason in _REFUSED.items() if getattr(self, name)}
        if self.n is not None and self.n != 1:
            refused["n"] = "an agent gives one answer"
        if self.modalities and self.modalities != ["text"]:
            refused["modalities"] = "agents answer in text"
        for name, reason in refused.items():
            raise InvalidRequest(f"`{name}`: {reason}", "body", name)

    @property
    def with_usage(self) -> bool:
        """Whether a stream ends with the turn's usage."""
        return self.stream_options is not None and self.stream_options.include_usage

    @property
    def conversation_id(self) -> str:
        """The conversation that `metadata` names; empty for the agent's default. Not checked."""
        return str((self.metadata or {}).get("conversation_id") or "")
