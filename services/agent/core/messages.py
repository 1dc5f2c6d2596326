"""Messages as they are stored: a role and parts. Pure.

One stored message may be shown to clients as several (see `pieces`): each run of neighbouring parts of one kind
is one piece, numbered from 0. A piece's otid is the message's UUID with its low 7 bits replaced by that number. Calls
that wait for the client are one piece behind all others, as in the reference, where their request is a message of its
own: its UUID is the one before the message's, and its otid is its id.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import groupby
from typing import Any, Literal, TypeVar, assert_never
from uuid import UUID, uuid5

from services.agent.core.releases import NewerRelease
from services.common.core.storable import storable

# approval: a client's answers to calls that waited; summary: what stands for messages that were compacted.
Role = Literal["system", "user", "assistant", "tool", "approval", "summary"]
# Why a call waits for the client: to be approved, or to be run by the client itself.
Gate = Literal["", "approval", "client"]
# An otid has 7 bits for the piece's number.
MAX_PIECES = 128


@dataclass(frozen=True, slots=True)
class Text:
    """Plain text."""

    text: str = ""
    signature: str = ""


@dataclass(frozen=True, slots=True)
class Image:
    """A picture: base64 `data` with its `media_type`, or a `url`."""

    data: str = ""
    url: str = ""
    media_type: str = ""


@dataclass(frozen=True, slots=True)
class Reasoning:
    """Thoughts in the clear, with the provider's signature where it demands one back.

    `prompted`: the model wrote them in an argument of the call that follows, because its agent's type asks for that.
    """

    text: str = ""
    signature: str = ""
    prompted: bool = False


@dataclass(frozen=True, slots=True)
class RedactedReasoning:
    """Thoughts that only the provider can read."""

    data: str = ""


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call. `key` is ours and unique in the tenant; `id` is the provider's, display data.

    A call with a `gate` is not run before the client has answered it.
    """

    key: str = ""
    id: str = ""
    name: str = ""
    arguments: str = ""
    gate: Gate = ""


@dataclass(frozen=True, slots=True)
class Return:
    """The answer to the call with the provider's id `call_id`. `refused`: the tool was not run.

    `captures`: the tool ran where its output is captured, so that none is an empty one. `by_client`: the client
    answered the call: with what its own tool returned, or with no.
    """

    call_id: str = ""
    name: str = ""
    text: str = ""
    is_error: bool = False
    stdout: tuple[str, ...] = ()
    stderr: tuple[str, ...] = ()
    images: tuple[Image, ...] = ()
    refused: bool = False
    captures: bool = False
    by_client: bool = False


@dataclass(frozen=True, slots=True)
class Decision:
    """A client's answer to the call with the provider's id `call_id`, which waited for approval; "": to all that wait.

    `request_id`: the UUID under which those calls are shown; "": whichever wait. `by_rule`: the time limit of a tool
    rule gave it, which answers nothing but its own call.
    """

    call_id: str = ""
    approve: bool = False
    reason: str = ""
    request_id: str = ""
    by_rule: bool = False


Part = Text | Image | Reasoning | RedactedReasoning | Call | Return | Decision
AnyPart = TypeVar("AnyPart", bound=Part)
Kind = Literal["content", "reasoning", "redacted", "call", "gated_call", "return", "decision"]


@dataclass(frozen=True, slots=True)
class Message:
    """A stored message. `seq` is its place in its log, 0 while it has none."""

    id: UUID
    role: Role
    parts: tuple[Part, ...]
    created_at: datetime
    run_id: UUID | None = None
    step_id: UUID | None = None
    name: str | None = None
    otid: str | None = None
    sender_id: str | None = None
    seq: int = field(default=0, compare=False)
    # What it was once measured to be, in tokens and bytes; see window/sizes.py.
    size: tuple[int, int] | None = field(default=None, init=False, compare=False, repr=False)


def has_part(message: Message, part_type: type[Part]) -> bool:
    """Returns whether a message has a part of this type."""
    # Without a loop in Python: every message of a window is asked several times a turn.
    return part_type in map(type, message.parts)


def calls_of(message: Message) -> tuple[Call, ...]:
    """Returns the tool calls in a message, in order."""
    if not has_part(message, Call):
        return ()
    return tuple(part for part in message.parts if isinstance(part, Call))


def gated_calls(message: Message) -> tuple[Call, ...]:
    """Returns the calls in a message that wait, or waited, for the client."""
    return tuple(call for call in calls if call.gate) if (calls := calls_of(message)) else ()


def text_of(message: Message) -> str:
    """Returns all that people would search for in a message, joined by newlines."""
    return "\n".join(filter(None, map(searchable, message.parts)))


def storable_part(part: AnyPart) -> AnyPart:
    """Returns the part with texts that can be stored."""
    values: dict[str, Any] = {name: getattr(part, name) for name in part.__slots__}
    changes = {name: _clean(value) for name, value in values.items() if _clean(value) != value}
    return replace(part, **changes) if changes else part


def kind_of(part: Part) -> Kind:
    """Returns what decides whether two neighbouring parts are one piece."""
    match part:
        case Text() | Image():
            return "content"
        case Reasoning():
            return "reasoning"
        case RedactedReasoning():
            return "redacted"
        case Call(gate=gate):
            return "gated_call" if gate else "call"
        case Return():
            return "return"
        case Decision():
            return "decision"
    assert_never(part)


def pieces(message: Message) -> list[tuple[str, tuple[Part, ...]]]:
    """Returns the pieces a client sees, each with its otid. The client's own otid is kept on what it sent."""
    if message.role == "approval":
        # Decisions and the client's own returns are one answer; it has an otid only from who sent it.
        return [(message.otid or "", message.parts)]
    waiting = gated_calls(message)
    others = (
        [part for part in message.parts if not (isinstance(part, Call) and part.gate)] if waiting else message.parts
    )
    groups = [tuple(group) for _, group in groupby(others, key=kind_of)]
    if message.otid is not None and len(groups) == 1 and not waiting:
        return [(message.otid, groups[0])]
    shown = [(piece_otid(message.id, number), group) for number, group in enumerate(groups)]
    return [*shown, (request_otid(message.id), waiting)] if waiting else shown


def request_otid(message_id: UUID) -> str:
    """Returns the otid of the request for the calls of a message that wait for the client: its public id."""
    return f"message-{request_id(message_id)}"


def request_id(message_id: UUID) -> UUID:
    """Returns the id of the request for the calls of a message that wait for the client."""
    return UUID(int=message_id.int - 1)


def piece_otid(message_id: UUID, number: int) -> str:
    """Returns the otid of a message's piece; see LETTA V1 API, offline threading ids."""
    return str(UUID(int=(message_id.int & ~0x7F) | min(number, MAX_PIECES - 1)))


def piece_id(message: Message, part: Part) -> UUID:
    """Returns the id of a stored piece for clients: that of its message, or of the request for its calls.

    Where all calls wait, text and thoughts belong to the request.
    """
    calls = calls_of(message)
    waits = kind_of(part) == "gated_call" or (bool(calls) and all(call.gate for call in calls))
    return request_id(message.id) if waits else message.id


def delta_id(message_id: UUID, part: Part) -> UUID:
    """Returns the id of a piece while it comes: whether other calls wait is not known then."""
    return request_id(message_id) if kind_of(part) == "gated_call" else message_id


def system_message_id(conversation_id: UUID) -> UUID:
    """Returns the id of a conversation's compiled prompt for clients; no row has it."""
    return uuid5(conversation_id, "system")


def parts_to_json(parts: Iterable[Part]) -> list[dict[str, Any]]:
    """Returns the stored form of parts; fields that say nothing are left out."""
    return [_part_to_json(part) for part in parts]


def parts_from_json(stored: Iterable[dict[str, Any]]) -> tuple[Part, ...]:
    """Returns parts from their stored form. Raises NewerRelease for what this release does not know."""
    return tuple([_part_from_json(part) for part in stored])


def readable_parts(stored: Iterable[dict[str, Any]]) -> tuple[Part, ...]:
    """Returns parts from their stored form, with a sentence in the place of what this release does not know."""
    return tuple([_readable_part(part) for part in stored])


_TYPES: dict[str, type[Part]] = {
    "text": Text,
    "image": Image,
    "reasoning": Reasoning,
    "redacted_reasoning": RedactedReasoning,
    "tool_call": Call,
    "tool_return": Return,
    "decision": Decision,
}
_NAMES = {part_type: name for name, part_type in _TYPES.items()}
_UNKNOWN = "[Here was a part of type {!r}, which this release does not know.]"


def _part_to_json(part: Part) -> dict[str, Any]:
    values: dict[str, Any] = {name: getattr(part, name) for name in part.__slots__}
    if isinstance(part, Return):
        values["images"] = parts_to_json(part.images)
    members = {name: value for name, value in values.items() if value not in ("", False, (), [])}
    return {"type": _NAMES[type(part)]} | members


def _part_from_json(stored: dict[str, Any]) -> Part:
    values = stored.copy()
    try:
        part_type = _TYPES[values.pop("type")]
        if part_type is Return:
            values["stdout"], values["stderr"] = tuple(values.get("stdout", ())), tuple(values.get("stderr", ()))
            values["images"] = parts_from_json(values.get("images", ()))
        return part_type(**values)
    except (KeyError, TypeError) as error:
        raise NewerRelease(f"a part of a message is of a kind that this release does not know: {error!r}") from error


def _readable_part(stored: dict[str, Any]) -> Part:
    try:
        return _part_from_json(stored)
    except NewerRelease:
        return Text(_UNKNOWN.format(stored.get("type")))


def _clean(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_clean, value))
    if isinstance(value, Image):
        return storable_part(value)
    return storable(value) if isinstance(value, str) else value


def searchable(part: Part) -> str:
    """Returns what people would search for in a part."""
    match part:
        case Text(text=text) | Return(text=text):
            return text
        case Call(name=name, arguments=arguments):
            return f"{name} {arguments}"
        case Decision(reason=reason):
            return reason
        case Image() | Reasoning() | RedactedReasoning():
            return ""
    assert_never(part)
