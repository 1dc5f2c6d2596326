"""Chat completions and turns, one made of the other. Pure.

The history in a request is the client's copy of what the agent knows already. New is what comes after its last message
of role assistant: that alone is told to the agent.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from gateway.errors.invalid import InvalidRequest
from gateway.openai_api.agent_turns import AgentTurn, tool_choice
from gateway.openai_api.requests import ChatCompletion, ChatMessage, Tool
from gateway.resources.messages.approvals import ToolReturn, ToolReturnCreate
from gateway.resources.messages.content import Content, ContentPart, ImagePart, ImageSource, TextPart
from gateway.resources.messages.requests import ClientTool, InputMessage, MessageCreate
from gateway.rest.convert import Rest, from_json
from loci.agent.v1 import agent_pb2, message_service_pb2
from services.common.fields import enum_names

# Between texts that the agent said apart.
_APART = "\n\n"
_CUT_SHORT = ("max_tokens_exceeded", "max_steps", "cancelled")


def turn_body(body: ChatCompletion) -> AgentTurn:
    """Returns the body of the turn. Raises InvalidRequest."""
    body.check()
    tools = [_client_tool(tool) for tool in body.tools or ()]
    choice = tool_choice(body.tool_choice, [tool.name for tool in tools])
    stop = [body.stop] if isinstance(body.stop, str) else body.stop or ()
    fields: dict[str, Any] = {
        "messages": list(_input(body.messages)),
        "client_tools": [tool for tool in tools if tool.name in choice.offered] or None,
        "first_call": choice.first_call,
        "parallel_tool_calls": body.parallel_tool_calls,
        "stop": tuple(filter(None, stop)),
        "response_format": body.response_format,
        "return_logprobs": bool(body.logprobs),
        "top_logprobs": body.top_logprobs,
        "max_steps": body.max_steps,
        "on_busy": body.on_busy,
    }
    return AgentTurn(**fields)


def _input(messages: Sequence[ChatMessage]) -> Iterable[InputMessage]:
    """Returns the new messages, the returns of the client's tools before all others."""
    last = max((index for index, message in enumerate(messages) if message.role == "assistant"), default=-1)
    new = messages[last + 1 :]
    if not new:
        raise InvalidRequest("the last message is the agent's own; say something to it", "body", "messages")
    if returns := [_return(message) for message in new if message.role == "tool"]:
        yield ToolReturnCreate(tool_returns=returns)
    for message in new:
        if message.role == "function":
            raise InvalidRequest("role function: use `tools` and role tool", "body", "messages")
        if message.role != "tool":
            parts = _content(message)
            yield MessageCreate(role="user" if message.role == "user" else "system", content=parts, name=message.name)


def _return(message: ChatMessage) -> ToolReturn:
    if not message.tool_call_id:
        raise InvalidRequest("a message of role tool needs a `tool_call_id`", "body", "messages")
    return ToolReturn(tool_call_id=message.tool_call_id, tool_return=_content(message), status="success")


def _content(message: ChatMessage) -> Content:
    if message.content is None and message.role in ("system", "developer"):
        return ""
    if message.content is None:
        raise InvalidRequest(f"a message of role {message.role} needs `content`", "body", "messages")
    return message.content if isinstance(message.content, str) else [_part(part) for part in message.content]


def _part(part: Rest) -> ContentPart:
    kind, image = part.get("type"), part.get("image_url")
    if kind == "text" and isinstance(text := part.get("text"), str):
        return TextPart(text=text)
    url = image.get("url") if isinstance(image, dict) else None
    if kind == "image_url" and isinstance(url, str):
        return ImagePart(type="image", source=image_source(url, "messages"))
    raise InvalidRequest(f"content of type {kind} is not taken; use text and image_url", "body", "messages")


def image_source(url: str, field: str) -> ImageSource:
    """Returns the picture at an address, which may hold it itself. Raises InvalidRequest, which names `field`."""
    if not url.startswith("data:"):
        return ImageSource(type="url", url=url)
    head, _, data = url.removeprefix("data:").partition(",")
    media_type, *parameters = head.split(";")
    if "base64" not in parameters:
        raise InvalidRequest("a data: address needs base64", "body", field)
    return ImageSource(type="base64", media_type=media_type, data=data)


def _client_tool(tool: Tool) -> ClientTool:
    if tool.type != "function" or tool.function is None:
        raise InvalidRequest(f"tools of type {tool.type} are not taken; use functions", "body", "tools")
    function = tool.function
    return ClientTool(name=function.name, description=function.description, parameters=function.parameters)


class ChunkDeltas:
    """Tells what an agent says as the deltas of one message of role assistant; that of a whole message is all of it.

    Texts that the agent said apart have an empty line between them. The calls are those that wait for the client.
    """

    def __init__(self) -> None:
        self._parts: dict[str, tuple[Any, Any]] = {}
        self._calls: dict[str, int] = {}
        self._kept: dict[str, tuple[Any, Any]] = {}

    def keep(self) -> None:
        """Keeps what was sent up to now: it is stored."""
        self._kept = dict(self._parts)

    def forget(self) -> None:
        """Forgets what was sent since: it is void."""
        self._parts = dict(self._kept)

    def deltas(self, content: Rest) -> list[Rest]:
        """Returns the deltas of a message, or a piece of one, in the form of the REST API."""
        match content["message_type"]:
            case "assistant_message":
                return self._text("content", content, content["content"])
            case "reasoning_message":
                return self._text("reasoning_content", content, content["reasoning"])
            case "approval_request_message":
                calls = content["tool_calls"]
                return [self._call(call) for call in (calls if isinstance(calls, list) else [calls])]
            case _:
                return []

    def _text(self, name: str, content: Rest, text: str) -> list[Rest]:
        if not text:
            return []
        part = (content["id"], content["otid"])
        apart = self._parts.setdefault(name, part) != part
        self._parts[name] = part
        return [{name: f"{_APART}{text}" if apart else text}]

    def _call(self, call: Rest) -> Rest:
        call_id = call["tool_call_id"]
        function = {name: call[name] for name in ("name", "arguments") if call.get(name)}
        index = self._calls.get(call_id)
        if index is not None:
            return {"tool_calls": [{"index": index, "function": function}]}
        index = self._calls[call_id] = len(self._calls)
        begun = {"index": index, "id": call_id, "type": "function", "function": {"arguments": ""} | function}
        return {"tool_calls": [begun]}


def assistant_message(contents: Iterable[Rest]) -> Rest:
    """Returns the one message of role assistant that holds what an agent said in a turn."""
    teller, texts, calls = ChunkDeltas(), {"content": "", "reasoning_content": ""}, []
    for delta in (delta for one in contents for delta in teller.deltas(one)):
        for name, value in delta.items():
            if name == "tool_calls":
                calls += [{key: call[key] for key in ("id", "type", "function")} for call in value]
            else:
                texts[name] += value
    message: Rest = {"role": "assistant", "content": texts["content"] or (None if calls else ""), "refusal": None}
    if texts["reasoning_content"]:
        message["reasoning_content"] = texts["reasoning_content"]
    return message | {"tool_calls": calls} if calls else message


def completion(agent_id: str, contents: Iterable[Rest], end: message_service_pb2.TurnEnd) -> Rest:
    """Returns a turn that has ended."""
    choice = {"index": 0, "message": assistant_message(contents)} | finish(end)
    head = {"id": end.run.id, "object": "chat.completion", "created": created(end), "model": agent_id}
    return head | {"choices": [choice], "usage": usage(end.usage)}


def finish(end: message_service_pb2.TurnEnd) -> Rest:
    """Returns the end of a turn as members of a choice; `stop_reason` is our own word for it."""
    reason = enum_names(agent_pb2.StopReason.DESCRIPTOR).get(end.stop_reason) or "error"
    finished = "tool_calls" if reason == "requires_approval" else "length" if reason in _CUT_SHORT else "stop"
    return {"finish_reason": finished, "stop_reason": reason, "logprobs": from_json(end.logprobs_json)}


def created(end: message_service_pb2.TurnEnd) -> int:
    """Returns the time at which the run of a turn was made, in seconds since 1970."""
    return end.run.created_at.seconds


def usage(used: message_service_pb2.TurnUsage) -> Rest:
    """Tokens of all model calls of a turn."""
    return {
        "prompt_tokens": used.prompt_tokens,
        "completion_tokens": used.completion_tokens,
        "total_tokens": used.total_tokens,
        "prompt_tokens_details": {"cached_tokens": used.cached_input_tokens},
        "completion_tokens_details": {"reasoning_tokens": used.reasoning_tokens},
    }
