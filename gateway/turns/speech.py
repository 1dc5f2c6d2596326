"""Older agents speak by calling a tool: such a call is shown as the message that it is. Pure.

A call of the tool (`send_message`) becomes an assistant_message with the text of one argument, and the tool's return is
left out, in answers, streams and lists alike. What is not such a call stays as it is: one whose arguments are not JSON
or lack the text, and a return that reports an error, which says that the text was not accepted.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from uuid import UUID

import orjson

from gateway.turns.arguments import TextArgument
from loci.agent.v1 import message_pb2

# A message has at most 128 parts; the calls of one part are counted from behind, where no part is.
_LAST_PART = 127


@dataclass
class _Call:
    """A call that is being written."""

    index: int
    argument: TextArgument
    name: str = ""
    # Arguments that came before the name.
    held: str = ""
    # All arguments that came; kept where the first ones may be missing.
    heard: list[str] = field(default_factory=list)


class SpeechRenderer:
    """How the calls of one request or list are shown. `tool`: the one that speaks; `argument`: what it says.

    resumed: the stream begins after a cursor, so the head of a text may have been read before.
    """

    def __init__(self, tool: str = "send_message", argument: str = "message", *, resumed: bool = False) -> None:
        self._tool = tool
        self._argument = argument
        self._resumed = resumed
        # The calls of messages that are being written, by message id and call id.
        self._open: dict[str, dict[str, _Call]] = {}

    def whole(self, source: message_pb2.Message) -> list[message_pb2.Message]:
        """Returns a stored message as it is shown; nothing where it is only the return of what was said."""
        match source.WhichOneof("message"):
            case "tool_call_message":
                return self._calls(source, self._open.pop(source.id, {}))
            case "tool_return_message":
                return self._returns(source)
            case _:
                return [source]

    def piece(self, source: message_pb2.Message) -> list[message_pb2.Message]:
        """Returns a delta as it is shown; nothing until something of the text is there."""
        if source.WhichOneof("message") != "tool_call_message":
            return [source]
        messages = []
        for call in source.tool_call_message.tool_calls:
            messages += self._piece(source, call)
        return messages

    def _piece(self, source: message_pb2.Message, piece: message_pb2.ToolCall) -> list[message_pb2.Message]:
        calls = self._open.setdefault(source.id, {})
        call = calls.get(piece.tool_call_id)
        if call is None:
            call = calls[piece.tool_call_id] = _Call(len(calls), TextArgument(self._argument))
        call.name = call.name or piece.name
        if self._resumed:
            call.heard.append(piece.arguments)
        if not call.name:
            call.held += piece.arguments
            return []
        arguments, call.held = call.held + piece.arguments, ""
        if call.name != self._tool:
            if arguments == piece.arguments and len(source.tool_call_message.tool_calls) == 1:
                return [source]
            held = message_pb2.ToolCall(name=piece.name, arguments=arguments, tool_call_id=piece.tool_call_id)
            return [_with_calls(source, [held])]
        text = call.argument.feed(arguments)
        return [_as_assistant_message(source, text, call.index)] if text else []

    def _calls(self, source: message_pb2.Message, open_: Mapping[str, _Call]) -> list[message_pb2.Message]:
        messages: list[message_pb2.Message] = []
        others: list[message_pb2.ToolCall] = []
        place = 0
        for index, call in enumerate(source.tool_call_message.tool_calls):
            text = self._text(call)
            if text is not None:
                read = self._read_before(call, open_.get(call.tool_call_id))
                if not read or read != text:
                    messages.append(_as_assistant_message(source, text.removeprefix(read), index))
                continue
            if not others:
                place = len(messages)
            others.append(call)
        if others:
            messages.insert(place, _with_calls(source, others))
        return messages

    def _text(self, call: message_pb2.ToolCall) -> str | None:
        if call.name != self._tool:
            return None
        try:
            arguments = orjson.loads(call.arguments)
        except orjson.JSONDecodeError:
            return None
        text = arguments.get(self._argument) if isinstance(arguments, dict) else None
        return text if isinstance(text, str) else None

    def _read_before(self, call: message_pb2.ToolCall, open_call: _Call | None) -> str:
        """Returns the head of the text, when only the tail of its call was heard in this stream."""
        tail = "".join(open_call.heard) if open_call else ""
        if not tail or call.arguments.startswith(tail) or not call.arguments.endswith(tail):
            return ""
        return TextArgument(self._argument).feed(call.arguments.removesuffix(tail))

    def _returns(self, source: message_pb2.Message) -> list[message_pb2.Message]:
        returns = source.tool_return_message.tool_returns
        others = [one for one in returns if one.name != self._tool or one.status != "success"]
        if len(others) == len(returns):
            return [source]
        if not others:
            return []
        message = _copy(source)
        message.tool_return_message.tool_returns.extend(others)
        return [message]


def _as_assistant_message(source: message_pb2.Message, text: str, index: int) -> message_pb2.Message:
    message = _copy(source)
    message.assistant_message.CopyFrom(message_pb2.AssistantMessage(content=text))
    if source.otid:
        message.otid = _otid(source.otid, index)
    return message


def _with_calls(source: message_pb2.Message, calls: Iterable[message_pb2.ToolCall]) -> message_pb2.Message:
    message = _copy(source)
    message.tool_call_message.tool_calls.extend(calls)
    return message


def _copy(source: message_pb2.Message) -> message_pb2.Message:
    """Returns the fields that all kinds share."""
    copy = message_pb2.Message()
    copy.CopyFrom(source)
    copy.ClearField(source.WhichOneof("message") or "assistant_message")
    return copy


def _otid(otid: str, index: int) -> str:
    """Parts of one message are told apart by the low 7 bits of their otids; so are its calls that say something."""
    return str(UUID(int=UUID(otid).int & ~_LAST_PART | (_LAST_PART - index)))
