"""Token by token and whole: what a reader of deltas still has to be told once the message itself is durable.

The agent service sends pieces of a message as they come (deltas) and, when it is stored, the message itself. A client
that joins pieces must get each character once, so of the stored message only what the pieces lacked is passed on.
After a replica was lost, pieces may have been missed: then the pieces that follow are held back, and the stored message
supplies what is missing.
"""

from dataclasses import dataclass, field
from typing import Any

from gateway.resources.messages.responses import calls_of, head, message, message_type
from gateway.rest.convert import Rest
from loci.agent.v1 import message_pb2


@dataclass
class _Call:
    named: bool = False
    arguments: list[str] = field(default_factory=list)


@dataclass
class _Sent:
    """The parts of a step's reply that were passed on."""

    # Ids under which pieces came.
    messages: set[str] = field(default_factory=set)
    # Pieces of text by (message_type, otid), and the id they had.
    texts: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    ids: dict[tuple[str, str], str] = field(default_factory=dict)
    calls: dict[str, _Call] = field(default_factory=dict)
    # (message_type, otid) of parts that come in one piece, or whose signature was passed on.
    done: set[tuple[str, str]] = field(default_factory=set)
    # Pieces of it were missed, or may have been.
    muted: bool = False


class Deltas:
    """The messages under way in one stream.

    joins_midway: the stream begins at an unknown place of a message under way (a run is joined without a cursor).
    tail_only: the stream begins after a cursor, so the head of a message may have been read before.
    """

    def __init__(self, *, joins_midway: bool = False, tail_only: bool = False) -> None:
        # By step: what is one message when it is stored may have come under two ids.
        self._sent: dict[str, _Sent] = {}
        self._joins_midway = joins_midway
        self._tail_only = tail_only

    def interrupted(self) -> None:
        """Notes an interruption: pieces were lost of the messages under way, and perhaps of one that is new."""
        for sent in self._sent.values():
            sent.muted = True
        self._joins_midway = True

    def abandon(self, message_id: str, step_id: str) -> None:
        """Drops the pieces of a step's reply, which are void."""
        void = [key for key, sent in self._sent.items() if key == step_id or message_id in sent.messages]
        for key in void:
            del self._sent[key]

    def piece(self, source: message_pb2.Message) -> list[Rest]:
        """Returns the contents to pass on of a delta: it, or nothing."""
        sent = self._sent.get(_key(source))
        if sent is None:
            sent = self._sent[_key(source)] = _Sent(muted=self._joins_midway)
        sent.messages.add(source.id)
        # Only the first message seen after joining can have begun before.
        self._joins_midway = False
        if sent.muted:
            return []
        kind = message_type(source)
        part = (kind, source.otid)
        match kind:
            case "tool_call_message" | "approval_request_message":
                return [chunk for call in calls_of(source) for chunk in _call_chunks(source, call, sent)]
            case "assistant_message" | "reasoning_message":
                sent.texts.setdefault(part, []).append(_text(source))
                sent.ids[part] = source.id
                if source.reasoning_message.HasField("signature"):
                    sent.done.add(part)
            case _:
                sent.done.add(part)
        return [message(source)]

    def whole(self, source: message_pb2.Message) -> list[Rest]:
        """Returns the contents to pass on of a durable message: the rest after its pieces.

        What the client answered itself is not passed on, as in the reference, unless a tool of ours returned beside it.
        """
        sent = self._sent.get(_key(source))
        kind = message_type(source)
        if kind == "tool_return_message":
            returns = source.tool_return_message.tool_returns
            return [] if all(one.by_client for one in returns) else [message(source)]
        part = (kind, source.otid)
        if sent is None:
            return [message(source)]
        match kind:
            case "tool_call_message" | "approval_request_message":
                return _remaining_calls(source, sent)
            case "assistant_message" | "reasoning_message" if part in sent.texts:
                source.id = sent.ids[part]
                return self._remaining_text(source, "".join(sent.texts.pop(part)), part in sent.done)
            case _ if part in sent.done:
                return []
        return [message(source)]

    def are_ahead(self, source: message_pb2.Message) -> bool:
        """Returns whether pieces were passed on of what comes after a durable message in the same reply."""
        sent = self._sent.get(_key(source))
        if sent is None or message_type(source) == "tool_return_message":
            return False
        # What is durable is taken out by `whole`.
        return bool(sent.texts or sent.calls)

    def _remaining_text(self, source: message_pb2.Message, text_sent: str, signed: bool) -> list[Rest]:
        text = _text(source)
        signature = source.reasoning_message.HasField("signature") and not signed
        if text.startswith(text_sent):
            rest = text[len(text_sent) :]
        elif text_sent.startswith(text) or (self._tail_only and text.endswith(text_sent)):
            rest = ""
        else:
            # The pieces belong to another text: better twice than not at all.
            rest = text
        if not rest and not signature:
            return []
        name = "content" if message_type(source) == "assistant_message" else "reasoning"
        return [message(source) | {name: rest}]


def _key(source: message_pb2.Message) -> str:
    return source.step_id or source.id


def _text(source: message_pb2.Message) -> str:
    if source.WhichOneof("message") == "assistant_message":
        return source.assistant_message.content
    return source.reasoning_message.reasoning


def _call_chunks(source: message_pb2.Message, call: message_pb2.ToolCall, sent: _Sent) -> list[Rest]:
    call_sent = sent.calls.setdefault(call.tool_call_id, _Call())
    call_sent.arguments.append(call.arguments)
    named, call_sent.named = call_sent.named, call_sent.named or bool(call.name)
    return _chunks(source, call.tool_call_id, "" if named else call.name, call.arguments)


def _chunks(source: message_pb2.Message, call_id: str, name: str, arguments: str) -> list[Rest]:
    """Returns the pieces of a call: the id always, the name once and alone, one object under both field names."""
    waits = message_type(source) == "approval_request_message"
    chunks = []
    for piece in ({"name": name}, {"arguments": arguments}):
        if any(piece.values()):
            # Of calls that wait, the reference sends nulls, too.
            nulls: dict[str, Any] = {"name": None, "arguments": None} if waits else {}
            whole = {**nulls, **piece, "tool_call_id": call_id}
            chunks.append(head(source) | {"tool_call": whole, "tool_calls": whole})
    return chunks


def _remaining_calls(source: message_pb2.Message, sent: _Sent) -> list[Rest]:
    calls = calls_of(source)
    if not any(call.tool_call_id in sent.calls for call in calls):
        return [message(source)]
    chunks: list[Rest] = []
    for call in calls:
        call_sent = sent.calls.pop(call.tool_call_id, _Call())
        arguments = "".join(call_sent.arguments)
        rest = call.arguments[len(arguments) :] if call.arguments.startswith(arguments) else ""
        if rest or not call_sent.named:
            chunks += _chunks(source, call.tool_call_id, "" if call_sent.named else call.name, rest)
    return chunks
