"""Calls that wait for the client, and its answers. Pure.

A reply may hold calls that are not run before the client has answered: to be approved, or to be run by the client
itself. The run ends with requires_approval, and the conversation waits. The answers come as a message of role
approval, which begins a run of its own; the first answer to a call counts. Once every gated call of the reply is
answered, all its calls are: what was approved and what never had to wait runs, what was refused is told to the model,
what the client returned is put in its place.

Whether calls wait is read from the history alone. When the run that began with the last answer is stopped before their
returns are stored, they wait no longer: the answer was given, and the next message must not set them off again.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from uuid import UUID

from services.agent.core.messages import Call, Decision, Message, Return, calls_of, gated_calls, piece_id

Answer = Decision | Return


@dataclass(frozen=True, slots=True)
class InputFits:
    """The input can be taken as it is."""


@dataclass(frozen=True, slots=True)
class ApprovalPending:
    """A call waits for the client, so nothing else can be said. `request_id`: the id it is shown under."""

    request_id: UUID


@dataclass(frozen=True, slots=True)
class NothingWaits:
    """There is an answer, and no call waits for one."""


@dataclass(frozen=True, slots=True)
class UnknownCalls:
    """Answers to calls that do not wait; `given` has the request of one that names no call."""

    wanted: tuple[str, ...]
    given: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RepeatedAnswer:
    """All of it was answered before, and run `run_id` went on with that."""

    run_id: UUID


Verdict = InputFits | ApprovalPending | NothingWaits | UnknownCalls | RepeatedAnswer


def check_input(history: Sequence[Message], input_messages: Sequence[Message], *, silent: bool = False) -> Verdict:
    """Returns whether an input can be taken by a conversation with this history; one that is `silent` says nothing, so
    that what waits can go on waiting.
    """
    answers = tuple(part for message in input_messages for part in answers_in(message))
    pending = pending_message(history)
    if pending is None:
        return _check_late_answers(history, answers) if answers else InputFits()
    if not answers and silent:
        return InputFits()
    if not answers:
        return ApprovalPending(piece_id(pending.id, gated_calls(pending)[0]))
    asked = _calls_by_request(pending)
    unknown = [part for part in answers if not any(_is_for(part, request, call) for request, call in asked)]
    if len(unknown) == len(answers) and isinstance(late := _check_late_answers(history, answers), RepeatedAnswer):
        return late
    ids = tuple(part.call_id or _request(part) for part in unknown)
    return UnknownCalls(tuple(call.id for _, call in asked), ids) if ids else InputFits()


def pending_message(history: Sequence[Message]) -> Message | None:
    """Returns the message whose calls wait for the client; some of them may be answered."""
    for message in reversed(history):
        if message.role == "tool":
            return None
        if gated_calls(message):
            return message if waiting_calls(calls_of(message), find_answers(history, message)) else None
    return None


def find_answers(history: Sequence[Message], pending: Message) -> dict[str, Answer]:
    """Returns the first answer to each gated call of `pending`, by the provider's id."""
    answers: dict[str, Answer] = {}
    after = next(place for place, message in enumerate(history) if message.id == pending.id)
    for message in history[after + 1 :]:
        for part in answers_in(message):
            for request, call in _calls_by_request(pending):
                if _is_for(part, request, call):
                    answers.setdefault(call.id, part)
    return answers


def answers_in(message: Message) -> tuple[Answer, ...]:
    """Returns the answers that a message from the client holds."""
    if message.role != "approval":
        return ()
    return tuple(part for part in message.parts if isinstance(part, Decision | Return))


def waiting_calls(calls: Sequence[Call], answers: dict[str, Answer]) -> tuple[Call, ...]:
    """Returns the calls that still wait."""
    return tuple(call for call in calls if call.gate and call.id not in answers)


def settle_call(call: Call, answer: Answer | None) -> Call | Return:
    """Returns what the client's answer makes of its call: the call, to be run, or its return."""
    match answer:
        case None:
            return call
        case Return():
            return Return(call.id, call.name, answer.text, answer.is_error, answer.stdout, answer.stderr, answer.images)
        case Decision(approve=True):
            if call.gate == "client":
                return Return(call.id, call.name, _NOT_RETURNED, is_error=True, refused=True)
            return call
        case Decision(reason=reason):
            said = f"This call was denied. Reason: {reason}" if reason else "This call was denied."
            return Return(call.id, call.name, said, is_error=True, refused=True)


def decline_calls(history: Sequence[Message], pending: Message, why: str = "") -> tuple[Return, ...]:
    """Returns the returns of all calls of a message when waiting for the client is given up: what it has returned
    stays.

    `why`: what is said of the others, unless it is that the run was cancelled.
    """
    given = find_answers(history, pending)
    return tuple(
        Return(call.id, call.name, why or _DECLINED, is_error=True, refused=True) if isinstance(made, Call) else made
        for call in calls_of(pending)
        for made in (settle_call(call, given.get(call.id)),)
    )


def waiting_runs(history: Sequence[Message], pending: Message) -> tuple[UUID, ...]:
    """Returns the runs that ended because calls of `pending` wait: the one that made them, then those that answered in
    part.
    """
    place = next(place for place, message in enumerate(history) if message.id == pending.id)
    asking = (pending, *filter(answers_in, history[place:]))
    return tuple(dict.fromkeys(message.run_id for message in asking if message.run_id is not None))


def find_repeated_run(answers: Sequence[Answer], earlier: Iterable[tuple[UUID, Sequence[Answer]]]) -> UUID | None:
    """Returns the run that goes on, or is about to, with answers to all the calls that `answers` answers."""
    for run_id, answered in earlier:
        if all(any(_covers(other, part) for other in answered) for part in answers):
            return run_id
    return None


_DECLINED = "The run was cancelled while a call waited for the client, and this call was not run."
_NOT_RETURNED = "This tool runs at the client, which approved the call but returned nothing. It was not run."


def _check_late_answers(history: Sequence[Message], answers: Sequence[Answer]) -> Verdict:
    """Returns an answer to calls that do not wait: they were answered before and have returned, or it is a mistake."""
    taken = _runs_by_answer(history)
    took = [_run_that_took(part, taken, history[-1].run_id if history else None) for part in answers]
    runs = [run_id for run_id in took if run_id is not None]
    if len(runs) < len(took):
        return NothingWaits()
    return RepeatedAnswer(max(runs, key=list(taken.values()).index))


def _run_that_took(part: Answer, taken: dict[tuple[str, str], UUID], newest: UUID | None) -> UUID | None:
    """Returns the run that took an answer. An answer to all calls that wait can only be that of the `newest` run."""
    request = _request(part)
    if part.call_id:
        return taken.get((request, part.call_id))
    runs = [run_id for (asked, _), run_id in taken.items() if request in ("", asked)]
    return runs[-1] if runs and (request or runs[-1] == newest) else None


def _runs_by_answer(history: Sequence[Message]) -> dict[tuple[str, str], UUID]:
    """Returns the runs that took the answers to calls that have returned since, in their order.

    By the request and the provider's id of the call; by "" and this id for the latest call that has it.
    """
    taken: dict[tuple[str, str], UUID] = {}
    claims: dict[tuple[str, str], UUID] = {}
    waited: tuple[tuple[str, Call], ...] = ()
    for message in history:
        if calls := calls_of(message):
            waited, claims = _calls_by_request(message), {}
            # Providers use ids again.
            for call in calls:
                taken.pop(("", call.id), None)
        given = (part for part in message.parts if isinstance(part, Decision | Return))
        for (request, call), part in product(waited, given):
            if message.run_id is not None and _is_for(part, request, call):
                claims.setdefault((request, call.id), message.run_id)
                claims.setdefault(("", call.id), message.run_id)
        if message.role == "tool":
            taken |= claims
    return taken


def _calls_by_request(message: Message) -> tuple[tuple[str, Call], ...]:
    """Returns the calls in a message that wait, or waited, each with the request that it is shown in."""
    return tuple((str(piece_id(message.id, call)), call) for call in gated_calls(message))


def _request(part: Answer) -> str:
    """Returns the request that an answer is for, as far as it says so."""
    return part.request_id if isinstance(part, Decision) else ""


def _is_for(part: Answer, request: str, call: Call) -> bool:
    """Returns whether it answers the call; a decision without an id answers all that wait."""
    if _request(part) not in ("", request):
        return False
    return part.call_id == call.id or (not part.call_id and isinstance(part, Decision))


def _covers(earlier: Answer, part: Answer) -> bool:
    """Returns whether one answer may be about all that the other one is about, as far as they say."""
    requests = {_request(earlier), _request(part)} - {""}
    return len(requests) < 2 and (earlier.call_id == part.call_id or "" in (earlier.call_id, part.call_id))


def answers_of(messages: Iterable[Message]) -> tuple[Answer, ...]:
    """Returns all answers that messages hold."""
    return tuple(part for message in messages for part in answers_in(message))
