"""Model calls <-> protobuf of the model gateway."""

from collections.abc import Iterable
from typing import Any, assert_never

import orjson

from loci.llm.v1 import chat_pb2, chat_service_pb2
from services.agent.convert.parts import image_fields
from services.agent.core import model_settings
from services.agent.core.facts import Options, Usage
from services.agent.core.messages import (
    Call,
    Decision,
    Image,
    Message,
    Part,
    Reasoning,
    RedactedReasoning,
    Return,
    Role,
    Text,
)
from services.agent.core.ports import ModelRequest, PartDelta, Reply, ToolInfo
from services.common.context import current_or_none
from services.common.errors import InvalidArgument
from services.common.ids import to_public

_ROLES: dict[Role, "chat_pb2.ChatRole.ValueType"] = {
    "system": chat_pb2.CHAT_ROLE_SYSTEM,
    "user": chat_pb2.CHAT_ROLE_USER,
    "assistant": chat_pb2.CHAT_ROLE_ASSISTANT,
    "tool": chat_pb2.CHAT_ROLE_TOOL,
}
_FINISHES = {
    chat_pb2.FINISH_REASON_STOP: "stop",
    chat_pb2.FINISH_REASON_TOOL_CALLS: "tool_calls",
    chat_pb2.FINISH_REASON_LENGTH: "length",
    chat_pb2.FINISH_REASON_CONTENT_FILTER: "content_filter",
}


def generation_request(request: ModelRequest) -> chat_service_pb2.GenerationRequest:
    """Returns the request on the wire. Raises InvalidArgument (LLM_BAD_REQUEST) for settings that no model has."""
    settings = dict(request.settings.model_settings)
    if wrong := model_settings.problem(settings):
        raise InvalidArgument(f"The agent's model_settings cannot be used: {wrong}.", reason="LLM_BAD_REQUEST")
    messages: Any = [*_prompt(request.prompt), *map(_message, request.history)]
    wire = chat_service_pb2.GenerationRequest(
        handle=request.settings.model,
        messages=messages,
        tools=map(_tool, request.tools),
        step_id=to_public("step", request.step_id),
        agent_id=to_public("agent", request.agent_id),
        run_id=_run_id(),
        fill_defaults=True,
    )
    if (temperature := settings.pop("temperature", None)) is not None:
        wire.temperature = temperature
    if (tokens := settings.pop("max_output_tokens", None)) is not None:
        wire.max_output_tokens = tokens
    settings.pop("parallel_tool_calls", None)
    settings.pop("provider_type", None)
    _put_tool_use(wire, request)
    _put_options(wire, request.settings.options)
    # What the agent has of its own comes before what is among its model's settings.
    if (form := request.settings.response_format or settings.pop("response_format", None)) is not None:
        wire.response_format_json = orjson.dumps(form).decode()
    if settings:
        wire.settings_json = orjson.dumps(settings).decode()
    return wire


def _prompt(text: str) -> list[dict[str, Any]]:
    """Returns the prompt's message; none for an empty prompt, which some providers refuse."""
    return [{"role": chat_pb2.CHAT_ROLE_SYSTEM, "parts": [{"text": {"text": text}}]}] if text else []


def _run_id() -> str:
    """Returns the run that calls; the token of the call does not name it (adapters/models.py)."""
    context = current_or_none()
    return "" if context is None or context.run_id is None else to_public("run", context.run_id)


def _put_tool_use(wire: chat_service_pb2.GenerationRequest, request: ModelRequest) -> None:
    if not request.tools:
        return
    wire.parallel_tool_calls = request.parallel
    if request.text_only:
        wire.tool_choice.mode = chat_pb2.TOOL_CHOICE_MODE_NONE
    elif request.only is not None:
        wire.tool_choice.tool_name = request.only
    elif request.forced:
        wire.tool_choice.mode = chat_pb2.TOOL_CHOICE_MODE_REQUIRED


def _put_options(wire: chat_service_pb2.GenerationRequest, options: Options) -> None:
    wire.return_logprobs = options.return_logprobs
    wire.return_token_ids = options.return_token_ids
    wire.include_trace = options.include_trace
    wire.websocket = options.websocket
    wire.stop.extend(options.stop)
    if options.top_logprobs is not None:
        wire.top_logprobs = options.top_logprobs


def _tool(tool: ToolInfo) -> chat_pb2.ToolSpec:
    return chat_pb2.ToolSpec(
        name=tool.name, description=tool.description, parameters_json=orjson.dumps(tool.parameters).decode()
    )


# ChatMessage and ChatPart, in the form in which a message of protobuf makes its own of them: that takes a third of the
# time, and a window has a hundred.
def _message(message: Message) -> dict[str, Any]:
    # An instruction in the middle of a conversation: only the first message may be the system's.
    role: Role = "user" if message.role in ("system", "summary") else message.role
    return {"role": _ROLES[role], "parts": [_part(part) for part in message.parts]}


def _part(part: Part) -> dict[str, Any]:
    match part:
        case Text():
            return {"text": {"text": part.text, "signature": part.signature or None}}
        case Image():
            return {"image": image_fields(part)}
        case Reasoning():
            return {"reasoning": {"text": part.text, "signature": part.signature or None}}
        case RedactedReasoning():
            return {"redacted_reasoning": {"data": part.data}}
        case Call():
            return {"tool_call": {"id": part.id, "name": part.name, "arguments_json": part.arguments}}
        case Return():
            content = [{"text": {"text": part.text}}, *({"image": image_fields(image)} for image in part.images)]
            result = {"tool_call_id": part.call_id, "content": content, "is_error": part.is_error}
            return {"tool_result": result}
        case Decision():
            # No model is shown one; see context.sendable.
            raise TypeError("a decision was about to be sent to a model")
    assert_never(part)


def part_of(event: chat_service_pb2.StreamGenerateResponse) -> PartDelta | Reply | None:
    """Returns what an event of a stream says; None for one of a newer release."""
    match event.WhichOneof("event"):
        case "text_delta":
            return PartDelta(event.text_delta.index, "content", event.text_delta.text)
        case "reasoning_delta":
            return PartDelta(event.reasoning_delta.index, "reasoning", event.reasoning_delta.text)
        case "tool_call_delta":
            delta = event.tool_call_delta
            return PartDelta(delta.index, "call", delta.arguments_delta, delta.id, delta.name)
        case "completed":
            return reply_of(event.completed)
        case _:
            return None


def reply_of(generation: chat_pb2.Generation) -> Reply:
    """Returns the whole reply."""
    usage = generation.usage
    return Reply(
        parts=tuple(_parts(generation.message.parts)),
        usage=Usage(
            usage.prompt_tokens,
            usage.completion_tokens,
            usage.cached_input_tokens if usage.HasField("cached_input_tokens") else None,
            usage.cache_write_tokens if usage.HasField("cache_write_tokens") else None,
            usage.reasoning_tokens if usage.HasField("reasoning_tokens") else None,
        ),
        finish=_FINISHES.get(generation.finish_reason, ""),
        outputs=_outputs(generation),
        trace=generation.provider_trace_json or None,
        handle=generation.handle,
        tool_problems=tuple((one.name, one.problem) for one in generation.tool_problems),
    )


def _outputs(generation: chat_pb2.Generation) -> dict[str, Any] | None:
    outputs: dict[str, Any] = {}
    if generation.logprobs_json:
        outputs["logprobs"] = orjson.loads(generation.logprobs_json)
    if generation.output_token_ids:
        outputs["output_ids"] = list(generation.output_token_ids)
    if generation.output_token_logprobs_json:
        outputs["output_token_logprobs"] = orjson.loads(generation.output_token_logprobs_json)
    return outputs or None


def _parts(parts: Iterable[chat_pb2.ChatPart]) -> Iterable[Part]:
    for part in parts:
        match part.WhichOneof("part"):
            case "text":
                yield Text(part.text.text, part.text.signature)
            case "reasoning":
                yield Reasoning(part.reasoning.text, part.reasoning.signature)
            case "redacted_reasoning":
                yield RedactedReasoning(part.redacted_reasoning.data)
            case "tool_call":
                yield Call("", part.tool_call.id, part.tool_call.name, part.tool_call.arguments_json)
