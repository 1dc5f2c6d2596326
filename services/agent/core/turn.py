"""A turn as a log of facts: what is known of a run, and what to do next. Pure: no I/O, no clock, no await.

    decide(turn) -> Action      what to do now
    evolve(turn, fact) -> Turn  what is known after a fact

A run is the fold of its facts. Whoever owns it performs the action that `decide` names, stores the fact that came
of it, and goes on with the evolved turn; the loop is in loop.py. After a crash the next owner folds the stored
facts and asks `decide` again: nothing else is needed to go on.

    UserSpoke -> CallModel -> ModelReplied ------+-> RunTools -> ToolsReturned -+-> CallModel ...
                     |                           |                             +-> Remind -> Reminded -> CallModel ...
                     |                           `-> Finish(end_turn,          `-> Finish(tool_rule, max_steps ...)
                     |                                      requires_approval ...)
                     +-> ContextOverflowed -> Compact -> Compacted -> CallModel ...
                     `-> ModelFailed -> Finish(llm_api_error ...)

In a group's run (groups/) members speak instead of a model:

    UserSpoke -> Speak -> MemberSpoke -+-> Speak ... -> Finish(end_turn)
                                       `-> Finish(requires_approval)

An interruption (cancel, deadline) is not a fact but a flag read with each stored fact; it turns the next action
into Finish.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, assert_never
from uuid import UUID, uuid5

from services.agent.core.approvals import find_answers, pending_message, waiting_calls
from services.agent.core.continuation import after_reply, calls_before, executed_calls
from services.agent.core.facts import (
    Action,
    CallModel,
    Compact,
    Compacted,
    ContextOverflowed,
    Fact,
    Failure,
    Finish,
    MemberSpoke,
    ModelFailed,
    ModelReplied,
    Remind,
    Reminded,
    RunEnded,
    RunStatus,
    RunTools,
    Settings,
    Speak,
    StopReason,
    ToolsReturned,
    Usage,
    UserSpoke,
)
from services.agent.core.groups.plan import GroupPlan, plan_from_json
from services.agent.core.groups.policy import go_on, next_speaker, spoken_before
from services.agent.core.messages import Call, Message, Text, calls_of, gated_calls
from services.agent.core.policy import POLICIES
from services.agent.core.rules.tool_rules import ExecutedCall
from services.agent.core.window.compaction import Buffer, Mode, Trigger, is_due

# A window that is left larger than this by its messages' number is compacted, however few its tokens are.
MOST_MESSAGES = 800


@dataclass(frozen=True, slots=True)
class Turn:
    """The state of a run.

    `history` is the window before the run and all that the run added, oldest first. `attempt` counts owners of
    the current step: 1 unless one was lost. `reply` is what `decide` has not yet dealt with: the model's last, or the
    one of an earlier run whose calls waited for the client.
    """

    run_id: UUID
    settings: Settings
    history: tuple[Message, ...] = ()
    step: int = 0
    attempt: int = 1
    reply: ModelReplied | None = None
    returned: ToolsReturned | None = None
    overflow: ContextOverflowed | None = None
    # Compactions since the model replied.
    compactions: int = 0
    # The calls that were made since the client asked, as tool rules count them; no compaction makes them undone.
    called: tuple[ExecutedCall, ...] = ()
    failure: Failure | None = None
    interruption: Failure | None = None
    usage: Usage = field(default_factory=Usage)
    context_tokens: int | None = None
    # Log probabilities and token ids of each reply, where they were asked for.
    outputs: tuple[Mapping[str, Any], ...] = ()
    # In a group: who had a turn of this round, in order, also in the runs that this one continues.
    spoke: tuple[MemberSpoke, ...] = ()
    ended: RunEnded | None = None

    @property
    def pending(self) -> tuple[Call, ...]:
        """The calls that have no return yet."""
        if self.reply is None or self.returned is not None or self.ended is not None:
            return ()
        return calls_of(self.reply.message)


def begin_turn(run_id: UUID, settings: Settings, before: Sequence[Message], messages: Sequence[Message]) -> Turn:
    """Returns a run whose first fact is stored; `before` is the window as it was."""
    # What waits for the client is not cleared away.
    cleared = settings.message_buffer_autoclear and pending_message(before) is None
    return evolve(
        Turn(run_id, settings, history=() if cleared else tuple(before)), UserSpoke(settings, tuple(messages))
    )


def decide(turn: Turn) -> Action:
    """Returns what to do now. Not to be asked once the turn has ended."""
    if (stopped := turn.interruption or turn.failure) is not None:
        return Finish(stopped.stop_reason, _unless_cancelled(stopped))
    if turn.settings.options.group is not None:
        return _next_in_group(turn, plan_from_json(turn.settings.options.group))
    if turn.overflow is not None:
        return Compact(Trigger.CONTEXT_WINDOW_EXCEEDED)
    if turn.settings.options.compact is not None:
        return Finish(StopReason.END_TURN) if turn.compactions else Compact(Trigger.MANUAL)
    if turn.pending:
        waits = turn.reply is not None and waiting_calls(turn.pending, find_answers(turn.history, turn.reply.message))
        return Finish(StopReason.REQUIRES_APPROVAL) if waits else RunTools(turn.step, turn.pending)
    if _needs_compaction(turn):
        return Compact(Trigger.POST_STEP_CONTEXT_CHECK)
    end = None if turn.reply is None else after_reply(turn.settings, turn.called, turn.reply, turn.returned)
    if isinstance(end, Finish):
        return end
    if turn.step >= turn.settings.options.max_steps:
        return Finish(StopReason.MAX_STEPS)
    return end or CallModel(turn.step + 1, turn.attempt)


def evolve(turn: Turn, fact: Fact) -> Turn:
    """Returns what is known after `fact`."""
    match fact:
        case UserSpoke(settings=settings, messages=messages):
            before, pending = turn.history, pending_message(turn.history)
            turn = replace(turn, settings=settings, history=before + messages)
            if pending is None:
                return turn
            if settings.options.group is not None:
                return replace(turn, reply=_of_earlier_run(pending), spoke=spoken_before(before))
            return replace(turn, reply=_of_earlier_run(pending), called=calls_before(before))
        case ModelReplied(message=message):
            return replace(
                turn,
                # A reply without any part says "done" and leaves no trace.
                history=turn.history + ((message,) if message.parts else ()),
                step=fact.step,
                attempt=1,
                reply=fact,
                returned=None,
                compactions=0,
                usage=add_usage(turn.usage, fact.usage),
                context_tokens=fact.usage.prompt_tokens + fact.usage.completion_tokens,
                outputs=turn.outputs + _outputs(fact),
            )
        case ModelFailed(failure=failure):
            return replace(turn, step=fact.step, failure=failure)
        case ContextOverflowed():
            return replace(
                turn, settings=_with_window(turn.settings, fact.limit), overflow=fact, attempt=fact.attempt + 1
            )
        case Compacted(summary=summary, kept_from=kept_from):
            return replace(
                turn,
                history=_after_compaction(turn.history, summary, kept_from),
                overflow=None,
                compactions=turn.compactions + 1,
                usage=add_usage(turn.usage, fact.usage),
                context_tokens=fact.stats.context_tokens_after,
            )
        case ToolsReturned(message=message):
            called = turn.called + executed_calls(message, waited=fact.step == 0)
            return replace(turn, history=(*turn.history, message), attempt=1, returned=fact, called=called)
        case Reminded(message=message):
            return replace(turn, history=(*turn.history, message), reply=None, returned=None)
        case MemberSpoke(message=message):
            return replace(
                turn,
                history=turn.history + ((message,) if message.parts else ()),
                step=fact.step,
                # What waits for the client is dealt with as what an agent's own model replied.
                reply=_of_earlier_run(message) if gated_calls(message) else None,
                usage=add_usage(turn.usage, fact.usage),
                spoke=(*turn.spoke, fact),
            )
        case RunEnded():
            return replace(turn, ended=fact)
    assert_never(fact)


def status_of(stop_reason: StopReason) -> RunStatus:
    """Returns the run status that a stop reason leads to, as the reference has it."""
    match stop_reason:
        case StopReason.END_TURN | StopReason.MAX_STEPS | StopReason.TOOL_RULE | StopReason.REQUIRES_APPROVAL:
            return RunStatus.COMPLETED
        case StopReason.CANCELLED:
            return RunStatus.CANCELLED
        case (
            StopReason.ERROR
            | StopReason.LLM_API_ERROR
            | StopReason.INVALID_LLM_RESPONSE
            | StopReason.INVALID_TOOL_CALL
            | StopReason.MAX_TOKENS_EXCEEDED
            | StopReason.NO_TOOL_CALL
            | StopReason.INSUFFICIENT_CREDITS
            | StopReason.CONTEXT_WINDOW_OVERFLOW_IN_SYSTEM_PROMPT
        ):
            return RunStatus.FAILED
    assert_never(stop_reason)


@lru_cache(1_024)  # asked for many times in a turn
def step_id(run_id: UUID, step: int) -> UUID:
    """Returns the id of a run's step: the same for every owner of the run."""
    return uuid5(run_id, f"step-{step}")


def call_key(run_id: UUID, step: int, index: int) -> str:
    """Returns the key under which a call acts at most once, whoever makes it."""
    return f"{run_id}/{step}/{index}"


def next_fact(turn: Turn) -> Fact | None:
    """Returns the fact that follows from what is known alone, if the next action is one that asks nobody."""
    if turn.ended is not None:
        return None
    action = decide(turn)
    match action:
        case Finish(stop_reason=stop_reason, failure=failure):
            return RunEnded(stop_reason, failure)
        case Remind():
            return reminder(turn, action)
        case CallModel() | RunTools() | Compact() | Speak():
            return None
    assert_never(action)


def reminder(turn: Turn, action: Remind) -> Reminded:
    """Returns what comes of Remind; the same whoever performs it."""
    last = turn.history[-1]
    message = Message(
        uuid5(turn.run_id, f"reminder-{turn.step}"), "user", (Text(action.text),), last.created_at, turn.run_id
    )
    return Reminded(replace(message, step_id=step_id(turn.run_id, turn.step)))


CANCELLED = Failure(StopReason.CANCELLED, "cancelled", "The run was cancelled.")
OVERDUE = Failure(
    StopReason.ERROR,
    "internal_error",
    "The run reached its time limit and was ended; send a message to go on from here.",
    reason="RUN_DEADLINE",
)


def add_usage(total: Usage, more: Usage) -> Usage:
    """Returns the sum; a figure is None only while no provider gave it."""
    return Usage(
        total.prompt_tokens + more.prompt_tokens,
        total.completion_tokens + more.completion_tokens,
        _add(total.cached_input_tokens, more.cached_input_tokens),
        _add(total.cache_write_tokens, more.cache_write_tokens),
        _add(total.reasoning_tokens, more.reasoning_tokens),
    )


def _next_in_group(turn: Turn, plan: GroupPlan) -> Speak | Finish:
    step = turn.step + 1
    if turn.reply is not None:
        answers = find_answers(turn.history, turn.reply.message)
        waits = waiting_calls(turn.pending, answers)
        return Finish(StopReason.REQUIRES_APPROVAL) if waits else go_on(plan, turn.reply.message, answers, step)
    before = [message for message in turn.history if message.run_id != turn.run_id]
    return next_speaker(plan, before, turn.spoke, step=step, most=turn.settings.options.max_steps)


def _add(one: int | None, other: int | None) -> int | None:
    return one if other is None else other + (one or 0)


def _unless_cancelled(failure: Failure) -> Failure | None:
    return None if failure.stop_reason is StopReason.CANCELLED else failure


def has_too_many_messages(turn: Turn) -> bool:
    """Returns whether the window has more messages than it should, however short they are."""
    buffered = POLICIES[turn.settings.agent_type].compaction is Mode.STATIC_BUFFER
    return len(turn.history) > (Buffer().most if buffered else MOST_MESSAGES)


def _needs_compaction(turn: Turn) -> bool:
    """Returns whether the window should be compacted after this step: once, and not before the model has replied."""
    if turn.compactions or turn.reply is None or turn.reply.step == 0:
        return False
    return is_due(turn.context_tokens or 0, turn.settings.context_window_limit) or has_too_many_messages(turn)


def _after_compaction(
    history: tuple[Message, ...], summary: Message | None, kept_from: UUID | None
) -> tuple[Message, ...]:
    """Returns the summary and what a compaction left; all of it when the message is not here: then what is here is
    newer than that.
    """
    if summary is None:
        return history
    if kept_from == summary.id:
        return (summary,)
    places = (place for place, message in enumerate(history) if message.id == kept_from)
    return (summary, *history[next(places, 0) :])


def _outputs(fact: ModelReplied) -> tuple[Mapping[str, Any], ...]:
    return () if fact.outputs is None else ({"message_id": str(fact.message.id), **fact.outputs},)


def _with_window(settings: Settings, learned: int) -> Settings:
    """Returns the settings with the window that the model turned out to have."""
    return replace(settings, context_window_limit=min(settings.context_window_limit, learned or 2**31))


def _of_earlier_run(message: Message) -> ModelReplied:
    return ModelReplied(0, 1, message, Usage(), "tool_calls")
