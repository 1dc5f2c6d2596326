"""Messages, and what waits in them for a client. No I/O.

The old server keeps calls that wait in a message of their own, of role approval, and calls of the same reply that do
not wait in another before it. Here they are one message, whose calls that wait are shown under the id before its own:
so it gets the id after the old one, and is shown under that.
"""

from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple
from uuid import UUID, uuid5

from cli.importing.mapping import parts
from cli.importing.values import Row, Skip, as_list, as_object, as_text, public_id, storable, uuid_of
from loci.agent.v1 import message_pb2
from loci.agent.v1 import transfer_service_pb2 as pb

_ROLES = {
    "system": message_pb2.MESSAGE_ROLE_SYSTEM,
    "user": message_pb2.MESSAGE_ROLE_USER,
    "assistant": message_pb2.MESSAGE_ROLE_ASSISTANT,
    "tool": message_pb2.MESSAGE_ROLE_TOOL,
    "function": message_pb2.MESSAGE_ROLE_TOOL,
    "approval": message_pb2.MESSAGE_ROLE_APPROVAL,
    "summary": message_pb2.MESSAGE_ROLE_SUMMARY,
}
# What only a compiled prompt has.
_COMPILED = ("<memory_blocks>", "<memory_metadata>", "### Memory [last modified", "### Core Memory")
_PREFIX_CHARS = 200


@dataclass(frozen=True, slots=True)
class AgentInfo:
    """The facts of an agent that its messages need to be read.

    tools: names of its tools. returned: ids of calls that a client has run; decided: of those that it has judged.
    since: when it was made, for messages without a time.
    """

    agent_type: str = "letta_v1_agent"
    system: str = ""
    tools: frozenset[str] = frozenset()
    returned: frozenset[str] = frozenset()
    decided: frozenset[str] = frozenset()
    since: datetime = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Position:
    """The place of a row. `number`: in the window; `copy_for`: the conversation for which it is copied, if it is."""

    in_context: bool
    number: int = -1
    copy_for: UUID | None = None


class Absorbed(NamedTuple):
    """A row that is a part of another message here, for people."""

    reason: str


Conversion = tuple[Row, Position, pb.StoredMessage | Skip | Absorbed]


def client_answers(rows: Iterable[Row]) -> tuple[frozenset[str], frozenset[str]]:
    """Returns the ids of the calls that a client ran itself, and of those that it decided, from its answers."""
    returned, decided = set[str](), set[str]()
    for row in rows:
        for answer in map(as_object, as_list(row["approvals"])):
            (decided if answer.get("type") == "approval" else returned).add(as_text(answer.get("tool_call_id")))
    return frozenset(returned), frozenset(decided)


def to_message(row: Row, position: Position, agent_info: AgentInfo) -> pb.StoredMessage | Skip:
    """Returns a row as a message of this server."""
    role = as_text(row["role"])
    if role not in _ROLES:
        return Skip(f"there are no messages of role {role!r} here")
    if _is_system_prompt(row, position, agent_info):
        return Skip("it is a compiled system prompt; this server compiles its own")
    contents = list(_parts(row, role, position, agent_info))
    if not contents:
        return Skip("; ".join(["it is empty", *parts.losses(row["content"])]))
    if role == "user" and position.in_context and position.number == 1 and _is_summary(row):
        role = "summary"
    if requests_approval(row):
        role = "assistant"
    message_id = new_id(row, position)
    message = pb.StoredMessage(
        id=f"message-{message_id}",
        role=_ROLES[role],
        parts=contents,
        in_context=position.in_context,
        name=row["name"] if role == "user" and row["name"] else None,
        otid=row["otid"] if position.copy_for is None and not requests_approval(row) and row["otid"] else None,
        sender_id=row["sender_id"] or None,
    )
    message.created_at.FromDatetime(row["created_at"] if isinstance(row["created_at"], datetime) else agent_info.since)
    return message


def changes(row: Row, message: pb.StoredMessage | Absorbed) -> Iterator[str]:
    """Yields what became different in a message."""
    yield from parts.losses(row["content"])
    if isinstance(message, Absorbed):
        return
    if any(part.text.text == parts.UNREADABLE for part in message.parts):
        yield "an image in it could not be read"
    if row["role"] == "user" and message.role == message_pb2.MESSAGE_ROLE_SUMMARY:
        yield "it is a summary, and is kept as one"
    if row["role"] == "function":
        yield "it has the role 'tool' now"


def prompt_text(row: Row) -> str:
    """Returns the compiled prompt in the first message of a window; empty where it is none."""
    return storable(_text(row)) if row["role"] == "system" else ""


def _is_system_prompt(row: Row, position: Position, agent_info: AgentInfo) -> bool:
    """Returns whether the row is a compiled prompt: those are made anew."""
    if row["role"] != "system":
        return False
    text = _text(row)
    prefix = agent_info.system.strip()[:_PREFIX_CHARS]
    return position.number == 0 or any(mark in text for mark in _COMPILED) or bool(prefix and text.startswith(prefix))


def requests_approval(row: Row) -> bool:
    """Returns whether the row's calls wait, or waited, for the client."""
    return row["role"] == "approval" and bool(as_list(row["tool_calls"]))


def new_id(row: Row, position: Position) -> UUID:
    """Returns the row's id here; see above. A copy for another conversation has one of its own, always the same."""
    old = uuid_of(row["id"])
    visible = old if position.copy_for is None else uuid5(position.copy_for, str(old))
    return UUID(int=visible.int + 1) if requests_approval(row) else visible


async def merge_calls(conversions: AsyncIterator[Conversion]) -> AsyncIterator[Conversion]:
    """Yields the same, with calls of one reply, those that wait and those that do not, in one message."""
    last: Conversion | None = None
    async for one in conversions:
        if last is not None:
            if _belong_together(last, one):
                yield last[0], last[1], Absorbed(f"its calls are in the message of {one[0]['id']}")
                one = (one[0], one[1], _merge(last[2], one[2]))
            else:
                yield last
        last = one
    if last is not None:
        yield last


def _belong_together(before: Conversion, after: Conversion) -> bool:
    (first, position, message), (second, its_position, its_message) = before, after
    return (
        isinstance(message, pb.StoredMessage)
        and isinstance(its_message, pb.StoredMessage)
        and requests_approval(second)
        and first["role"] == "assistant"
        and bool(as_list(first["tool_calls"]))
        and first["step_id"] == second["step_id"]
        and position.in_context == its_position.in_context
    )


def _merge(before: object, after: object) -> pb.StoredMessage:
    assert isinstance(before, pb.StoredMessage)
    assert isinstance(after, pb.StoredMessage)
    one = pb.StoredMessage()
    one.CopyFrom(after)
    del one.parts[:]
    one.parts.extend([*before.parts, *after.parts])
    return one


def _parts(row: Row, role: str, position: Position, agent_info: AgentInfo) -> Iterator[pb.StoredPart]:
    match role:
        case "assistant":
            thinks = agent_info.agent_type != "letta_v1_agent" and bool(as_list(row["tool_calls"]))
            yield from parts.content_parts(row["content"], text=row["text"], thinks=thinks)
            yield from map(parts.openai_call_part, parts.openai_calls(row["tool_calls"]))
        case "approval" if requests_approval(row):
            thinks = agent_info.agent_type != "letta_v1_agent"
            yield from parts.content_parts(row["content"], text=row["text"], thinks=thinks)
            for one in parts.openai_calls(row["tool_calls"]):
                yield parts.openai_call_part(one, _gate(as_text(one.get("id")), _name(one), agent_info))
        case "approval":
            yield from _answers(row, position)
        case "tool" | "function":
            yield from _returns(row)
        case "user":
            yield from _user(row)
        case _:
            yield from parts.content_parts(row["content"], text=row["text"])


def _gate(call_id: str, name: str, agent_info: AgentInfo) -> str:
    """Returns why a call waits: the client runs it itself, or decides whether it may run."""
    if call_id in agent_info.returned:
        return "client"
    return "approval" if call_id in agent_info.decided or name in agent_info.tools else "client"


def _name(call: Row) -> str:
    return as_text(as_object(call.get("function")).get("name"))


def _answers(row: Row, position: Position) -> Iterator[pb.StoredPart]:
    request = _request(row, position)
    answers = [as_object(one) for one in as_list(row["approvals"])]
    if not answers and row["approve"] is not None:
        answers = [{"type": "approval", "approve": row["approve"], "reason": row["denial_reason"]}]
    for answer in answers:
        if answer.get("type") == "approval":
            decision = message_pb2.Decision(
                tool_call_id=as_text(answer.get("tool_call_id")),
                approve=bool(answer.get("approve")),
                reason=storable(as_text(answer.get("reason"))) or None,
                request_id=request,
            )
            yield pb.StoredPart(decision=decision)
        else:
            yield _return(answer, "", "")


def _request(row: Row, position: Position) -> str:
    """Returns the id under which the answered calls are shown."""
    old = as_text(row["approval_request_id"])
    if not old or position.copy_for is None:
        return public_id("message", old) if old else ""
    return f"message-{uuid5(position.copy_for, str(uuid_of(old)))}"


def _returns(row: Row) -> Iterator[pb.StoredPart]:
    returns = [as_object(one) for one in as_list(row["tool_returns"])]
    if returns:
        yield from (_return(one, as_text(row["tool_call_id"]), as_text(row["name"])) for one in returns)
    else:
        yield parts.tool_return_part(as_text(row["tool_call_id"]), _text(row), name=as_text(row["name"]))


def _return(answer: Row, call_id: str, name: str) -> pb.StoredPart:
    text = answer.get("func_response", answer.get("tool_return"))
    return parts.tool_return_part(
        as_text(answer.get("tool_call_id")) or call_id,
        text if isinstance(text, str) else "" if text is None else str(text),
        failed=answer.get("status") == "error",
        name=name,
        stdout=answer.get("stdout"),
        stderr=answer.get("stderr"),
    )


def _user(row: Row) -> Iterator[pb.StoredPart]:
    for part in parts.content_parts(row["content"], text=row["text"]):
        if part.HasField("text"):
            part.text.text = parts.unpack_user_message(part.text.text)
        yield part


def _is_summary(row: Row) -> bool:
    """Returns whether a message of role user is a summary, as older servers keep it."""
    return parts.is_alert(_text(row))


def _text(row: Row) -> str:
    texts = [as_text(as_object(part).get("text")) for part in as_list(row["content"])]
    return "\n".join(filter(None, texts)) or as_text(row["text"])
