"""A turn as a log of facts: what is known of a run, and what to do next. Pure: no I/O, no clock, no await.

    decide(turn) -> Action      what to do now
    evolve(turn, fact) -> Turn  what is known after a fact

A run is the fold of its facts. Whoever owns it performs the action that `decide` names, stores the fact that came
of it, and goes on with the evolved turn; the loop is in loop.py. After a crash the next owner folds the stored
facts and asks `decide` again: nothing else is needed to go on.

    UserSpoke -> CallModel -> ModelReplied -+-> RunTools -> ToolsReturned -> CallModel ...
                     |                      `-> Finish(end_turn)
                     `------> ModelFailed ----> Finish(llm_api_error ...)

An interruption (cancel, deadline) is not a fact but a flag read with each stored fact; it turns the next action
into Finish.
"""

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, assert_never
from uuid import UUID, uuid5

from services.agent.messages import Call, Message, calls_of

SCHEMA_VERSION = 1


class StopReason(StrEnum):
    """Why a run ends; values are those of the reference API."""

    END_TURN = "end_turn"
    ERROR = "error"
    LLM_API_ERROR = "llm_api_error"
    INVALID_LLM_RESPONSE = "invalid_llm_response"
    MAX_STEPS = "max_steps"
    MAX_TOKENS_EXCEEDED = "max_tokens_exceeded"
    CANCELLED = "cancelled"


class RunStatus(StrEnum):
    """How far a run got; values are those of the reference API."""

    CREATED = "created"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens; None where the provider does not say."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_input_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Settings:
    """What a run began with; it keeps them whatever happens to the agent meanwhile."""

    agent_version: int
    model: str
    embedding: str
    system: str
    context_window_limit: int
    max_steps: int
    tool_ids: tuple[UUID, ...] = ()
    timezone: str = "UTC"
    model_settings: dict[str, Any] = field(default_factory=dict)
    response_format: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a model call or a run failed, in the reference's words and ours."""

    stop_reason: StopReason
    error_type: str
    message: str
    detail: str = ""
    # ErrorInfo.reason of the failed call.
    reason: str = ""


# Facts ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class UserSpoke:
    """The run's first fact."""

    settings: Settings
    messages: tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class ModelReplied:
    """A model call ended well. `finish` is stop, tool_calls, length, content_filter or empty."""

    step: int
    attempt: int
    message: Message
    usage: Usage
    finish: str


@dataclass(frozen=True, slots=True)
class ModelFailed:
    """A model call failed for good."""

    step: int
    attempt: int
    failure: Failure


@dataclass(frozen=True, slots=True)
class ToolsReturned:
    """Every pending call has its answer; `message` holds the returns in the order of the calls."""

    step: int
    message: Message


@dataclass(frozen=True, slots=True)
class RunEnded:
    """The run's last fact."""

    stop_reason: StopReason
    failure: Failure | None = None


Fact = UserSpoke | ModelReplied | ModelFailed | ToolsReturned | RunEnded

# Actions -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CallModel:
    """Make model call number `step`, for the `attempt`th time."""

    step: int
    attempt: int


@dataclass(frozen=True, slots=True)
class RunTools:
    """Run these calls of model call number `step`."""

    step: int
    calls: tuple[Call, ...]


@dataclass(frozen=True, slots=True)
class Finish:
    """End the run."""

    stop_reason: StopReason
    failure: Failure | None = None


Action = CallModel | RunTools | Finish

# The turn ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Turn:
    """What is known of a run.

    `history` is the window before the run and all that the run added, oldest first. `attempt` counts owners of
    the current step: 1 unless one was lost.
    """

    run_id: UUID
    settings: Settings
    history: tuple[Message, ...] = ()
    step: int = 0
    attempt: int = 1
    pending: tuple[Call, ...] = ()
    reply: ModelReplied | None = None
    failure: Failure | None = None
    interruption: Failure | None = None
    usage: Usage = Usage()
    context_tokens: int | None = None
    ended: RunEnded | None = None


def decide(turn: Turn) -> Action:
    """What to do now. Not to be asked once the turn has ended."""
    if turn.interruption is not None:
        return Finish(turn.interruption.stop_reason, _unless_cancelled(turn.interruption))
    if turn.failure is not None:
        return Finish(turn.failure.stop_reason, turn.failure)
    if turn.pending:
        return RunTools(turn.step, turn.pending)
    if turn.reply is not None and not calls_of(turn.reply.message):
        cut = turn.reply.finish == "length"
        return Finish(StopReason.MAX_TOKENS_EXCEEDED if cut else StopReason.END_TURN)
    if turn.step >= turn.settings.max_steps:
        return Finish(StopReason.MAX_STEPS)
    return CallModel(turn.step + 1, turn.attempt)


def evolve(turn: Turn, fact: Fact) -> Turn:
    """What is known after `fact`."""
    match fact:
        case UserSpoke(settings=settings, messages=messages):
            return replace(turn, settings=settings, history=turn.history + messages)
        case ModelReplied(message=message):
            return replace(
                turn,
                # A reply without any part says "done" and leaves no trace.
                history=turn.history + ((message,) if message.parts else ()),
                step=fact.step,
                attempt=1,
                reply=fact,
                pending=calls_of(message),
                usage=add_usage(turn.usage, fact.usage),
                context_tokens=fact.usage.prompt_tokens + fact.usage.completion_tokens,
            )
        case ModelFailed(failure=failure):
            return replace(turn, step=fact.step, failure=failure)
        case ToolsReturned(message=message):
            return replace(turn, history=(*turn.history, message), attempt=1, pending=())
        case RunEnded():
            return replace(turn, ended=fact, pending=())
    assert_never(fact)


def status_of(stop_reason: StopReason) -> RunStatus:
    """The run status that a stop reason leads to, as the reference has it."""
    match stop_reason:
        case StopReason.END_TURN | StopReason.MAX_STEPS:
            return RunStatus.COMPLETED
        case StopReason.CANCELLED:
            return RunStatus.CANCELLED
        case (
            StopReason.ERROR
            | StopReason.LLM_API_ERROR
            | StopReason.INVALID_LLM_RESPONSE
            | StopReason.MAX_TOKENS_EXCEEDED
        ):
            return RunStatus.FAILED
    assert_never(stop_reason)


def step_id(run_id: UUID, step: int) -> UUID:
    """The id of a run's step: the same for every owner of the run."""
    return uuid5(run_id, f"step-{step}")


def call_key(run_id: UUID, step: int, index: int) -> str:
    """The key under which a call acts at most once, whoever makes it."""
    return f"{run_id}/{step}/{index}"


CANCELLED = Failure(StopReason.CANCELLED, "cancelled", "The run was cancelled.")
OVERDUE = Failure(
    StopReason.ERROR,
    "internal_error",
    "The run reached its time limit and was ended; send a message to go on from here.",
    reason="RUN_DEADLINE",
)


def add_usage(total: Usage, more: Usage) -> Usage:
    """The sum; a figure is None only while no provider gave it."""
    return Usage(
        total.prompt_tokens + more.prompt_tokens,
        total.completion_tokens + more.completion_tokens,
        _add(total.cached_input_tokens, more.cached_input_tokens),
        _add(total.cache_write_tokens, more.cache_write_tokens),
        _add(total.reasoning_tokens, more.reasoning_tokens),
    )


def _add(one: int | None, other: int | None) -> int | None:
    return one if other is None else other + (one or 0)


def _unless_cancelled(failure: Failure) -> Failure | None:
    return None if failure.stop_reason is StopReason.CANCELLED else failure
