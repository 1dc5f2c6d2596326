"""The part of the history that the model sees: always sendable, never larger than the window. Pure.

Whatever is stored (a call whose run was cancelled, a return whose call is out of the window, an empty message),
what `sendable` gives can be sent to every provider: each call is answered by exactly one return, directly after
it, and no two calls have one id. `fit` makes it fit, in the order that budget.py tells.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import takewhile
from uuid import UUID

from services.agent.core.approvals import find_answers, waiting_calls
from services.agent.core.messages import Call, Decision, Message, Part, Return, Text, calls_of, searchable
from services.agent.core.window.budget import room_for_messages
from services.agent.core.window.shrinking import in_words, shrink, with_short_returns
from services.agent.core.window.sizes import estimate, level, measure, weight

UNANSWERED = "This call was interrupted before it returned. It may or may not have taken effect."
WAITING = "This call has not run: it waits for an answer from the client."
NEVER_ALLOWED = "This call has not run: the client never answered it."
DENIED = "The client did not allow this call, and it has not run."
# Pictures are heavier than their tokens: below gRPC's 44 MiB, with space for prompt and tools. It is base64 that is
# counted: pictures of 24 MiB.
MOST_BYTES = 32 * 1024 * 1024
# How often a model that refuses a history is shown less of it at most.
SHORTENINGS = 4
_BLANK = Text()
# Messages that cannot be parted: one, or one with calls and one with their returns.
Unit = list[Message]

# Sendable ------------------------------------------------------------------------------------------------


def sendable(history: Iterable[Message]) -> list[Message]:
    """Returns the history with every call answered once and directly, without stray returns and empty messages.

    Summaries come first. Clients' answers are not shown: what came of them is in the returns.
    """
    messages = sorted(history, key=lambda message: message.role != "summary")
    sent: list[Message] = []
    seen: dict[str, int] = {}
    latest = waiting_place(messages)
    for place, message in enumerate(messages):
        if calls_of(message):
            otherwise = WAITING if place == latest else NEVER_ALLOWED
            sent += _answer_calls(message, _until_calls(messages, place + 1), seen, otherwise)
        elif message.role not in ("tool", "approval"):
            sent += _without_blanks(message)
    return sent


def waiting_place(history: Sequence[Message]) -> int | None:
    """Returns the place of the message whose calls wait for the client; None when the latest calls do not."""
    for place in range(len(history) - 1, -1, -1):
        if calls_of(history[place]):
            asking, later = history[place], history[place + 1 :]
            returned = {part.call_id for message in later for part in message.parts if isinstance(part, Return)}
            wait = waiting_calls(calls_of(asking), find_answers(history[place:], asking))
            return place if any(call.id not in returned for call in wait) else None
    return None


def answered_call_ids(message: Message) -> tuple[str, ...]:
    """Returns the ids of the calls that a message answers: by returns, or by a client's decisions."""
    return tuple(part.call_id for part in message.parts if isinstance(part, Return | Decision))


def _until_calls(messages: Sequence[Message], start: int) -> list[Message]:
    """Returns the messages up to the next one with calls: providers use a call's id again in later messages."""
    places = takewhile(lambda place: not calls_of(messages[place]), range(start, len(messages)))
    return [messages[place] for place in places]


def _without_blanks(message: Message) -> list[Message]:
    if _BLANK not in message.parts:
        return [message] if message.parts else []
    parts = tuple(part for part in message.parts if part != _BLANK)
    return [replace(message, parts=parts)] if parts else []


def _answer_calls(message: Message, later: Sequence[Message], seen: dict[str, int], not_allowed: str) -> Unit:
    """Returns a message with calls, and one with their returns.

    `seen` are the ids that are taken, and how often; it gets the new ones. `not_allowed` is said of calls that the
    client has not answered.
    """
    given, missing = _returns(later), _missing(message, later, not_allowed)
    parts: list[Part] = []
    returns: list[Return] = []
    for part in message.parts:
        if isinstance(part, Call):
            queue = given.get(part.id)
            answer = queue.pop(0) if queue else Return("", part.name, missing.get(part.id, UNANSWERED), is_error=True)
            part = replace(part, id=_unique_id(part.id, seen))
            returns.append(replace(answer, call_id=part.id))
        if part != _BLANK:
            parts.append(part)
    answers = replace(message, id=UUID(int=message.id.int ^ 1), role="tool", parts=tuple(returns))
    return [replace(message, parts=tuple(parts)), answers]


def _returns(later: Sequence[Message]) -> dict[str, list[Return]]:
    """Returns the returns by call id; what a tool message says comes before what a client said."""
    returns: dict[str, list[Return]] = {}
    for message in sorted(later, key=lambda message: message.role != "tool"):
        for part in message.parts:
            if isinstance(part, Return):
                returns.setdefault(part.call_id, []).append(part)
    return returns


def _missing(message: Message, later: Sequence[Message], not_allowed: str) -> dict[str, str]:
    """Returns the reasons for calls that have not run: the client denied them, or has not answered all."""
    denied = {
        call_id: f"{DENIED} {made.reason}".strip()
        for call_id, made in find_answers([message, *later], message).items()
        if isinstance(made, Decision) and not made.approve
    }
    if waiting_place([message, *later]) is None:
        return denied
    return dict.fromkeys((call.id for call in calls_of(message)), not_allowed) | denied


def _unique_id(call_id: str, seen: dict[str, int]) -> str:
    """Returns the id, or a like one that no other call has: some providers use ids again, others refuse that."""
    unused = call_id
    while unused in seen:
        seen[call_id] += 1
        unused = f"{call_id}-{seen[call_id]}"
    seen[unused] = 1
    return unused


# Fitting -------------------------------------------------------------------------------------------------


def shortenings(history: Sequence[Message], *, window: int, fixed: int, run_id: UUID) -> Iterator[list[Message]]:
    """Yields what to show of a sendable history: all that fits, then, for a model that refuses that, less and less.

    First the pictures of other runs than `run_id` go, then half of the room, and half again: at most SHORTENINGS
    times, and nothing twice in succession. See `fit` for window and fixed.
    """
    heavy = sum(map(weight, history)) > MOST_BYTES
    latest = fit(without_pictures(history, keep_run=run_id) if heavy else history, window=window, fixed=fixed)
    yield latest
    plain = without_pictures(history, keep_run=run_id)
    for halvings in range(SHORTENINGS):
        less = fit(plain, window=window, fixed=fixed, share=2**halvings)
        if less != latest:
            yield less
        latest = less


def fully_seen_ids(seen: Iterable[Message], stored: Iterable[Message]) -> tuple[UUID, ...]:
    """Returns the ids of the stored messages that a model saw whole."""
    words = {searchable(part) for message in seen for part in message.parts} | {""}
    return tuple(message.id for message in stored if all(searchable(part) in words for part in message.parts))


def without_pictures(history: Sequence[Message], *, keep_run: UUID) -> list[Message]:
    """Returns the history with a few words instead of each picture that another run than `keep_run` brought."""
    return [message if message.run_id == keep_run else in_words(message) for message in history]


def brings_pictures(history: Iterable[Message], run_id: UUID) -> bool:
    """Returns whether the run brought pictures that the model would see."""
    return any(message.run_id == run_id and in_words(message) != message for message in history)


def fits(history: Sequence[Message], *, window: int, fixed: int, share: int = 1) -> bool:
    """Returns whether `fit` would leave a sendable history as it is; one that does not fit is due for compaction."""
    tokens, load = measure(history)
    return tokens <= room_for_messages(window, fixed, share) and load <= MOST_BYTES // share


def fit(history: Sequence[Message], *, window: int, fixed: int, share: int = 1) -> list[Message]:
    """Returns what can be shown of a sendable history in `window` tokens beside `fixed` tokens of prompt and tools, and
    is not too heavy to send. With a `share` of n the messages get an nth of the room.

    In this order: old tool returns are cut, old messages left out, the newest messages cut in their middle. The
    summary, the newest question and the newest message stay, and a call is never parted from its return; markers
    say what was left out. It always fits, as long as `fixed` leaves LEAST_ROOM.
    """
    if fits(history, window=window, fixed=fixed, share=share):
        return list(history)
    short = with_short_returns(history)
    if fits(short, window=window, fixed=fixed, share=share):
        return short
    return _newest_part(short, room_for_messages(window, fixed, share), MOST_BYTES // share)


def _newest_part(history: Sequence[Message], room: int, load: int) -> list[Message]:
    """Returns the part of a history that fits into so many tokens and bytes."""
    units = list(_units(history))
    room -= estimate(_marker(history[0], len(history)))
    pinned = _pinned(units)
    most = level([_tokens(units[place]) for place in pinned], room)
    heaviest = level([_bytes(units[place]) for place in pinned], load)
    chosen = {place: shrink(units[place], most, heaviest) for place in pinned}
    room, load = room - sum(map(_tokens, chosen.values())), load - sum(map(_bytes, chosen.values()))
    for place in range(len(units) - 1, -1, -1):
        if place not in chosen:
            room, load = room - _tokens(units[place]), load - _bytes(units[place])
            if min(room, load) < 0:
                break
            chosen[place] = units[place]
    window = [message for place in sorted(chosen) for message in chosen[place]]
    left_out = len(history) - sum(len(units[place]) for place in chosen)
    if left_out:
        window.insert(1 if window[0].role == "summary" else 0, _marker(history[0], left_out))
    return window


def _pinned(units: Sequence[Unit]) -> list[int]:
    """Returns the places of what stays: the latest summary, the newest question, and the newest unit."""
    last = len(units) - 1
    places = {"summary": last, "user": last}
    places |= {unit[0].role: place for place, unit in enumerate(units) if unit[0].role in places}
    return sorted({*places.values(), last})


def _units(history: Sequence[Message]) -> Iterator[Unit]:
    place = 0
    while place < len(history):
        size = 2 if calls_of(history[place]) else 1
        yield list(history[place : place + size])
        place += size


def pinned_tokens(history: Sequence[Message]) -> int:
    """Returns the tokens of what stays of a history whatever its window: summary, newest question, newest message."""
    units = list(_units(with_short_returns(history)))
    return sum(_tokens(units[place]) for place in _pinned(units)) if units else 0


def _tokens(unit: Unit) -> int:
    return sum(map(estimate, unit))


def _bytes(unit: Unit) -> int:
    return sum(map(weight, unit))


def _marker(first: Message, left_out: int) -> Message:
    sentence = (
        f"[{left_out} earlier messages do not fit into the window and are not shown here. "
        "They are stored: conversation_search finds them.]"
    )
    return Message(UUID(int=0), "user", (Text(sentence),), first.created_at)
