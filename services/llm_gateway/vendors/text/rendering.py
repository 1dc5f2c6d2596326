"""Prompts from chats, for routes that take text. Pure.

A server's completion route is given the prompt that its chat route would have made. Here that is done by the built-in
formats, and the chat is put into the form that templates.py gives to a model's own template. Where a format says
nothing of tools, they are described to the model in words, and it writes its calls as tool_text.py reads them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson

from services.llm_gateway.core.chat import (
    ChatRequest,
    Image,
    Message,
    Reasoning,
    Role,
    Text,
    ToolCall,
    ToolMode,
    ToolResult,
    ToolSpec,
)
from services.llm_gateway.core.errors import LlmBadRequest, LlmImagesUnsupported
from services.llm_gateway.vendors.text.tool_text import CLOSE, OPEN

# Marks that tokenizers put before a text by themselves.
BEGINNINGS = ("<|begin_of_text|>", "<s>", "<bos>", "<|startoftext|>", "<\uff5cbegin\u2581of\u2581sentence\uff5c>")


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt. `begin` belongs before `text` where the server's tokenizer does not add it; `stops` end the reply;
    `opening` is the end of the text that already belongs to the reply.
    """

    text: str
    begin: str = ""
    stops: Sequence[str] = ()
    opening: str = ""


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn as text; `role` is system, user or assistant."""

    role: str
    text: str


@dataclass(frozen=True, slots=True)
class Format:
    """A built-in format: what stands around a turn of each role, and what opens the reply. `has_system` false: what the
    system says opens the first turn of the user. `alternates`: two turns of one role are one.
    """

    system: tuple[str, str]
    user: tuple[str, str]
    assistant: tuple[str, str]
    opening: str
    begin: str = ""
    stops: tuple[str, ...] = ()
    has_system: bool = True
    alternates: bool = False


def _format_of(before: str, end: str, model: str = "assistant", **fields: Any) -> Format:
    """A format whose turns all begin with the role's name; `before` has a place for it."""
    names = {role: before.format(role) for role in ("system", "user", model)}
    opening = names[model]
    return Format((names["system"], end), (names["user"], end), (opening, end), opening, stops=(end.strip(),), **fields)


FORMATS: Mapping[str, Format] = {
    "chatml": _format_of("<|im_start|>{}\n", "<|im_end|>\n"),
    "llama3": _format_of("<|start_header_id|>{}<|end_header_id|>\n\n", "<|eot_id|>", begin="<|begin_of_text|>"),
    "mistral": Format(
        ("", "\n\n"), ("[INST] ", " [/INST]"), (" ", "</s>"), "", "<s>", ("</s>",), has_system=False, alternates=True
    ),
    "gemma": _format_of(
        "<start_of_turn>{}\n", "<end_of_turn>\n", "model", begin="<bos>", has_system=False, alternates=True
    ),
}


def render_prompt(form: Format, request: ChatRequest) -> Prompt:
    """Returns the request as a prompt of a built-in format. Raises LlmImagesUnsupported."""
    turns = list(describe(request))
    if not form.has_system:
        turns = _without_system(turns)
    if form.alternates:
        turns = _alternating(turns)
    around = {"system": form.system, "user": form.user, "assistant": form.assistant}
    texts = [f"{around[turn.role][0]}{turn.text}{around[turn.role][1]}" for turn in turns]
    opening = opening_of(request)
    return Prompt("".join([*texts, form.opening, opening]), form.begin, form.stops, opening)


def opening_of(request: ChatRequest) -> str:
    """Returns the beginning of a reply where a call is demanded: a model that finds itself in a call goes on
    with it.
    """
    if not request.forces_a_call:
        return ""
    if isinstance(request.tool_choice, str):
        return f'{OPEN}\n{{"name": {_json(request.tool_choice)}, "arguments": '
    return f"{OPEN}\n"


def offered_tools(request: ChatRequest) -> Sequence[ToolSpec]:
    """Returns the tools that the model may call."""
    return () if request.tool_choice is ToolMode.NONE else request.tools


def describe(request: ChatRequest) -> Iterator[Turn]:
    """Yields the chat as turns of text, with tools, calls and results in words. Raises LlmImagesUnsupported."""
    tools, names = offered_tools(request), names_of_calls(request)
    texts = [text_of(message, request.handle) for message in request.messages if message.role is Role.SYSTEM]
    if tools:
        texts.append(_description(tools, several=request.parallel_tool_calls is not False))
    if texts:
        yield Turn("system", "\n\n".join(texts))
    for message in request.messages:
        text = text_of(message, request.handle)
        match message.role:
            case Role.USER:
                yield Turn("user", text)
            case Role.ASSISTANT:
                calls = [_written(part) for part in message.parts if isinstance(part, ToolCall)]
                yield Turn("assistant", "\n".join(filter(None, [text, *calls])))
            case Role.TOOL:
                results = [_result(part, names, request.handle) for part in message.parts]
                yield Turn("user", "\n".join(results))
            case Role.SYSTEM:
                pass


def messages_of(request: ChatRequest) -> list[dict[str, Any]]:
    """Returns the chat in the form that models' own templates know: arguments are objects. Raises
    LlmImagesUnsupported.
    """
    names = names_of_calls(request)
    return [made for message in request.messages for made in _messages(message, names, request.handle)]


def turns_as_messages(request: ChatRequest) -> list[dict[str, Any]]:
    """Returns the same with tools, calls and results in words, for templates that do not speak of tools."""
    return [{"role": turn.role, "content": turn.text} for turn in describe(request)]


def tools_of(tools: Sequence[ToolSpec]) -> list[dict[str, Any]]:
    """Returns tools as templates know them."""
    return [{"type": "function", "function": _tool(tool)} for tool in tools]


def split_beginning(text: str, begin: str = "") -> Prompt:
    """Returns a prompt from a template's text, without the mark that tokenizers add at the beginning."""
    mark_found = next((mark for mark in (begin, *BEGINNINGS) if mark and text.startswith(mark)), "")
    return Prompt(text.removeprefix(mark_found), mark_found)


def with_opening(prompt: Prompt, opening: str) -> Prompt:
    """Returns the prompt whose reply begins so."""
    return replace(prompt, text=f"{prompt.text}{opening}", opening=opening)


def names_of_calls(request: ChatRequest) -> Mapping[str, str]:
    """Returns the names of the tools that were called, by the ids of the calls."""
    parts = (part for message in request.messages for part in message.parts)
    return {part.id: part.name for part in parts if isinstance(part, ToolCall)}


def text_of(message: Message, handle: str) -> str:
    """Returns its text. Raises LlmImagesUnsupported."""
    return _join(message.parts, handle)


def _join(parts: Sequence[Any], handle: str) -> str:
    if any(isinstance(part, Image) for part in parts):
        raise LlmImagesUnsupported(f"{handle} is asked by a prompt of text, which holds no images.", handle=handle)
    return "\n".join(part.text for part in parts if isinstance(part, Text))


def _messages(message: Message, names: Mapping[str, str], handle: str) -> Iterator[dict[str, Any]]:
    match message.role:
        case Role.SYSTEM | Role.USER:
            yield {"role": message.role.name.lower(), "content": text_of(message, handle)}
        case Role.ASSISTANT:
            message_out: dict[str, Any] = {"role": "assistant", "content": text_of(message, handle)}
            thoughts = "\n".join(part.text for part in message.parts if isinstance(part, Reasoning))
            calls = [_call(part) for part in message.parts if isinstance(part, ToolCall)]
            yield (
                message_out
                | ({"reasoning_content": thoughts} if thoughts else {})
                | ({"tool_calls": calls} if calls else {})
            )
        case Role.TOOL:
            for part in message.parts:
                content = _content(part, handle)
                id = part.tool_call_id if isinstance(part, ToolResult) else ""
                yield {"role": "tool", "name": names.get(id, ""), "tool_call_id": id, "content": content}


def _call(call: ToolCall) -> dict[str, Any]:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": _arguments(call)}}


def _arguments(call: ToolCall) -> Any:
    """An object, or the text that is none."""
    try:
        return orjson.loads(call.arguments_json)
    except orjson.JSONDecodeError:
        return call.arguments_json


def _written(call: ToolCall) -> str:
    return f"{OPEN}\n{_json({'name': call.name, 'arguments': _arguments(call)})}\n{CLOSE}"


def _content(part: Any, handle: str) -> str:
    if not isinstance(part, ToolResult):
        raise LlmBadRequest("a tool message may hold tool results only", handle=handle)
    return _join(part.content, handle)


def _result(part: Any, names: Mapping[str, str], handle: str) -> str:
    content = _content(part, handle)
    return f"<tool_response>\n{_json({'name': names.get(part.tool_call_id, ''), 'content': content})}\n</tool_response>"


def _tool(tool: ToolSpec) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "parameters": orjson.loads(tool.parameters_json)}


def _description(tools: Sequence[ToolSpec], *, several: bool) -> str:
    lines = "\n".join(_json(made) for made in tools_of(tools))
    number = "You may make several calls in one reply." if several else "Make at most one call in a reply."
    return (
        "These are the tools that you can call, each with the JSON Schema of its arguments:\n"
        f"<tools>\n{lines}\n</tools>\n"
        "A call is a JSON object with the tool's name and its arguments, between tags:\n"
        f'{OPEN}\n{{"name": "the tool", "arguments": {{}}}}\n{CLOSE}\n'
        f"{number} Results come back between <tool_response> tags."
    )


def _without_system(turns: list[Turn]) -> list[Turn]:
    if not turns or turns[0].role != "system":
        return turns
    first, *rest = turns
    if rest and rest[0].role == "user":
        return [Turn("user", f"{first.text}\n\n{rest[0].text}"), *rest[1:]]
    return [Turn("user", first.text), *rest]


def _alternating(turns: Sequence[Turn]) -> list[Turn]:
    joined: list[Turn] = []
    for turn in turns:
        if joined and joined[-1].role == turn.role:
            joined[-1] = Turn(turn.role, f"{joined[-1].text}\n\n{turn.text}")
        else:
            joined.append(turn)
    return joined


def _json(value: Any) -> str:
    return orjson.dumps(value).decode()
