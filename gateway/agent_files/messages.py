"""Messages of a file -> stored messages in the order of a log, and back.

The system message is no message of the log: it is the prompt that the model was last given. In a file a request for
approval is a message of its own role; stored it is the assistant's, and its calls say what they wait for.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import orjson
from google.protobuf.timestamp_pb2 import Timestamp

from gateway.agent_files import message_parts as parts
from gateway.agent_files.schema import FileAgent, FileMessage
from gateway.rest.convert import moment
from loci.agent.v1 import message_pb2
from loci.agent.v1.transfer_service_pb2 import StoredMessage, StoredPart
from services.common.ids import from_public, to_public, uuid7

Json = dict[str, Any]
# Their models think in an argument of each call; other servers keep that as the text beside it.
THINKING_IN_TEXT = frozenset(("memgpt_agent", "memgpt_v2_agent", "split_thread_agent", "react_agent", "workflow_agent"))
# Only what a client says has an otid that the client chose.
_CLIENTS = frozenset(("user", "approval", "system"))
# What a compiled prompt holds, whoever compiled it.
_COMPILED = ("<memory_blocks>", "<memory_metadata>", "### Core Memory", "### Memory [last modified")
_ROLES = {
    name.removeprefix("MESSAGE_ROLE_").lower(): number for name, number in message_pb2.MessageRole.items() if number
}
_NAMES = {number: name for name, number in _ROLES.items()}


def stored_messages(agent: FileAgent, tool_names: frozenset[str], begun: datetime) -> list[StoredMessage]:
    """Returns the messages of an agent: first those that are not in context, then those that are, in its order.

    tool_names: of the agent's tools; a call of another that waits is the client's. begun: the time of messages without.
    Raises InvalidArgument (AGENT_FILE_INVALID).
    """
    context = list(dict.fromkeys(agent.in_context_message_ids or ()))
    by_id = {message.id: message for message in agent.messages or ()}
    compiled = _compiled(agent, context, by_id)
    in_window = set(context)
    older = [message for message in agent.messages or () if message.id not in in_window]
    reading = _MessageReader(agent, tool_names, agent.messages or (), begun)
    messages: list[StoredMessage] = []
    for message in older:
        if message.id not in compiled:
            messages += reading.stored(message, in_context=False)
    summaries = [each for each in context if by_id[each].role == "summary"]
    for message_id in context:
        if message_id not in compiled:
            # The window has one summary: the newest.
            is_past = message_id in summaries[:-1]
            messages += reading.stored(by_id[message_id], in_context=True, role="user" if is_past else None)
    return messages


def prompt_of(agent: FileAgent) -> str:
    """Returns the system prompt that the agent's model was last given; empty where the file has none."""
    first = next(iter(agent.in_context_message_ids or ()), None)
    return next(
        (_words(each.content) for each in agent.messages or () if each.id == first and each.role == "system"), ""
    )


def _compiled(agent: FileAgent, context: Sequence[str], by_id: Mapping[str, FileMessage]) -> frozenset[str]:
    """Returns the system messages that somebody compiled: the first one in context, and older ones of its like."""
    ids = {context[0]} if context and by_id[context[0]].role == "system" else set()
    beginning = (agent.system or "")[:200]
    for message in by_id.values():
        if message.role == "system" and message.id not in context:
            text = _words(message.content)
            if (beginning and text.startswith(beginning)) or any(mark in text for mark in _COMPILED):
                ids.add(message.id)
    return frozenset(ids)


def _words(content: str | list[Json] | None) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(str(part["text"]) for part in content or () if isinstance(part.get("text"), str))


class _MessageReader:
    def __init__(
        self, agent: FileAgent, tool_names: frozenset[str], messages: Sequence[FileMessage], begun: datetime
    ) -> None:
        self._thinks_in_text = agent.agent_type in THINKING_IN_TEXT
        self._tool_names = tool_names
        self._asking = frozenset(
            str(rule.get("tool_name")) for rule in agent.tool_rules or () if rule.get("type") == "requires_approval"
        )
        # Calls that the client answered with a return of its own.
        self._run_by_client = frozenset(
            str(answer.get("tool_call_id"))
            for message in messages
            for answer in message.approvals or ()
            if answer.get("type") != "approval"
        )
        self._names = {
            call.id: call.name for message in messages for call in parts.calls_of(message.tool_calls, message.id)
        }
        self._time = begun

    def stored(self, message: FileMessage, *, in_context: bool, role: str | None = None) -> Iterator[StoredMessage]:
        """Yields None where it says nothing."""
        self._time = message.created_at or self._time
        kind = role or message.role
        parts_of_it = list(self._parts(message, kind))
        if not parts_of_it:
            return
        if kind == "approval" and message.tool_calls:
            kind = "assistant"
        created_at = Timestamp()
        created_at.FromDatetime(self._time.astimezone(UTC))
        yield StoredMessage(
            id=to_public("message", uuid7()),
            role=_ROLES["tool" if kind == "function" else kind],
            parts=parts_of_it,
            created_at=created_at,
            name=message.name if kind == "user" else None,
            otid=message.otid if kind in _CLIENTS else None,
            sender_id=message.sender_id,
            in_context=in_context,
        )

    def _parts(self, message: FileMessage, kind: str) -> Iterator[StoredPart]:
        if kind in ("tool", "function"):
            yield from self._returns(message)
            return
        if kind == "approval" and not message.tool_calls:
            yield from self._answers(message)
            return
        calls = list(parts.calls_of(message.tool_calls, message.id))
        thinks = self._thinks_in_text and bool(calls)
        yield from parts.parts_of(message.content, message.id, thinks_in_text=thinks)
        waiting = [call.name for call in calls if call.name in self._asking or call.name not in self._tool_names]
        for call in calls:
            if kind == "approval" and (call.name in waiting or not waiting):
                by_client = call.id in self._run_by_client or call.name not in self._tool_names
                call.gate = "client" if by_client else "approval"
            yield StoredPart(call=call)

    def _returns(self, message: FileMessage) -> Iterator[StoredPart]:
        returned = list(parts.returns_of(message.tool_returns, message.name or "", message.id))
        if not returned:
            # As older servers had it: the text alone.
            call_id = message.tool_call_id or ""
            returned = [parts.unwrapped(call_id, message.name or "", _words(message.content))]
        for each in returned:
            each.name = self._names.get(each.tool_call_id) or each.name
            yield StoredPart(tool_return=each)

    def _answers(self, message: FileMessage) -> Iterator[StoredPart]:
        for answer in message.approvals or ():
            call_id = str(answer.get("tool_call_id") or "")
            if answer.get("type") == "approval" or "approve" in answer:
                reason = answer.get("reason")
                decision = message_pb2.Decision(
                    tool_call_id=call_id,
                    approve=answer.get("approve") is True,
                    reason=reason if isinstance(reason, str) else None,
                )
                yield StoredPart(decision=decision)
            else:
                for each in parts.returns_of([answer], self._names.get(call_id, ""), message.id):
                    yield StoredPart(tool_return=each)
        if not message.approvals and message.approve is not None:
            decision = message_pb2.Decision(approve=message.approve, reason=message.denial_reason)
            yield StoredPart(decision=decision)


# Stored messages -> messages of a file ------------------------------------------------------------------------------


class MessageWriter:
    """Puts stored messages of one agent, in their order, into the form of a file."""

    def __init__(self, agent_id: str, agent_type: str, model: str, timezone: Any) -> None:
        self._agent_id = agent_id
        self._thinks_in_text = agent_type in THINKING_IN_TEXT
        self._model = model
        self._zone = timezone
        self._asked: str | None = None

    def message(self, stored: StoredMessage, message_id: str) -> Json:
        """Returns one message."""
        role = _NAMES[stored.role]
        calls = [part.call for part in stored.parts if part.WhichOneof("part") == "call"]
        returns = [part.tool_return for part in stored.parts if part.WhichOneof("part") == "tool_return"]
        gated = any(call.gate for call in calls)
        if gated:
            self._asked = to_public("message", _before(stored.id))
        packed = [self._packed(each, stored.created_at) for each in returns]
        content = [
            made
            for part in stored.parts
            if (made := parts.part_to_json(part, thinks_in_text=self._thinks_in_text)) is not None
        ]
        if role == "tool" and returns:
            content = [{"type": "text", "text": text, "signature": None} for text in packed]
        answers = list(self._answers(stored, packed)) if role == "approval" else []
        is_tool = role == "tool"
        return {
            "type": "message",
            "otid": stored.otid or str(from_public("message", stored.id)),
            "group_id": None,
            "role": "approval" if gated else role,
            "content": content,
            "name": (stored.name if stored.HasField("name") else returns[0].name if is_tool and returns else "")
            or None,
            "sender_id": stored.sender_id if stored.HasField("sender_id") else None,
            "batch_item_id": None,
            "id": message_id,
            "model": self._model if role in ("system", "assistant", "tool") else None,
            "agent_id": self._agent_id,
            "tool_calls": [parts.call_to_json(call) for call in calls] or None,
            "tool_call_id": _first_id(calls if gated else (), returns if is_tool else ()),
            "tool_returns": [
                parts.return_to_json(each, text) for each, text in zip(returns, packed, strict=True) if is_tool
            ],
            "created_at": moment(stored.created_at),
            "approve": None,
            "approval_request_id": self._asked if answers else None,
            "denial_reason": None,
            "approvals": answers,
        }

    def _answers(self, stored: StoredMessage, packed: Sequence[str]) -> Iterator[Json]:
        texts = iter(packed)
        for part in stored.parts:
            match part.WhichOneof("part"):
                case "decision":
                    decision = part.decision
                    yield {
                        "type": "approval",
                        "tool_call_id": decision.tool_call_id,
                        "approve": decision.approve,
                        "reason": decision.reason or None,
                    }
                case "tool_return":
                    yield parts.return_to_json(part.tool_return, next(texts))

    def _packed(self, returned: message_pb2.ToolReturn, at: Timestamp) -> str:
        fields = {
            "status": "Failed" if returned.status == "error" else "OK",
            "message": returned.tool_return,
            "time": f"{at.ToDatetime(UTC).astimezone(self._zone):%Y-%m-%d %I:%M:%S %p %Z%z}",
        }
        return orjson.dumps(fields, option=orjson.OPT_INDENT_2).decode()


def _first_id(calls: Iterable[Any], returns: Iterable[Any]) -> str | None:
    ids = [*(call.id for call in calls), *(each.tool_call_id for each in returns)]
    return ids[0] if ids else None


def _before(message_id: str) -> Any:
    """Returns the id under which calls that wait are shown."""
    return type(value := from_public("message", message_id))(int=value.int - 1)
