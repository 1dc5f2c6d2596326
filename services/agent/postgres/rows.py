"""Rows of the turn path <-> values of the loop."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, assert_never
from uuid import UUID

from asyncpg.pgproto.pgproto import UUID as QuickUUID

from services.agent.core.approval_timeouts import due_at
from services.agent.core.approvals import pending_message
from services.agent.core.events import Abandoned, Ended, Event, RunView, first_sequence, show
from services.agent.core.fact_log import failure_from_json, failure_to_json, to_row, usage_to_json
from services.agent.core.facts import (
    Compacted,
    ContextOverflowed,
    Fact,
    Failure,
    MemberSpoke,
    ModelFailed,
    ModelReplied,
    Reminded,
    RunEnded,
    RunStatus,
    StopReason,
    ToolsReturned,
    Usage,
    UserSpoke,
)
from services.agent.core.messages import Message, calls_of, parts_from_json, parts_to_json, text_of
from services.agent.core.ports_journal import Commit
from services.agent.core.recall.texts import index_texts
from services.agent.core.turn import Turn, status_of, step_id

# Kinds of facts that readers are shown a message of.
SHOWN_KINDS = ("model_replied", "tools_returned", "compacted", "member_spoke")


def message_from_row(row: Mapping[str, Any]) -> Message:
    """Returns a message of the log."""
    return _message(row, row["id"], row["created_at"], row["run_id"], row["step_id"])


def message_from_json(row: Mapping[str, Any]) -> Message:
    """Returns a message of the log that came as JSON."""
    # A window has a hundred of them, each turn. asyncpg's own UUID is made in C.
    run_id, step_id = row["run_id"], row["step_id"]
    return _message(
        row,
        QuickUUID(row["id"]),
        datetime.fromisoformat(row["created_at"]),
        None if run_id is None else QuickUUID(run_id),
        None if step_id is None else QuickUUID(step_id),
    )


def _message(
    row: Mapping[str, Any], message_id: UUID, created_at: datetime, run_id: UUID | None, step_id: UUID | None
) -> Message:
    return Message(
        message_id,
        row["role"],
        parts_from_json(row["content"]),
        created_at,
        run_id,
        step_id,
        row["name"],
        row["otid"],
        row["sender_id"],
        row["seq"],
    )


def message_to_row(message: Message, place: int, fact: int) -> dict[str, Any]:
    """Returns parameters of one message; `place` counts from 0 within the statement, `fact` from 1."""
    search, *more = index_texts(text_of(message))
    return {
        "place": place,
        "fact": fact,
        "id": message.id,
        "role": message.role,
        "content": parts_to_json(message.parts),
        "name": message.name,
        "otid": message.otid,
        "sender_id": message.sender_id,
        # A step of an earlier run comes from asyncpg, whose UUIDs orjson does not know.
        "step_id": None if message.step_id is None else str(message.step_id),
        "search": search,
        "search_more": more or None,
        "created_at": message.created_at,
    }


def input_rows(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Returns parameters of the messages of a run's first fact."""
    return [message_to_row(message, place, 1) for place, message in enumerate(messages)]


def fact_rows(commit: Commit) -> list[dict[str, Any]]:
    """Returns parameters of the facts."""
    rows = []
    for place, (fact, sequence) in enumerate(zip(commit.facts, commit.sequences, strict=True), start=1):
        kind, schema_version, body = to_row(fact)
        rows.append(
            {
                "place": place,
                "kind": kind,
                "schema_version": schema_version,
                "sequence": sequence,
                "body": body,
            }
        )
    return rows


def message_rows(facts: Sequence[Fact]) -> list[dict[str, Any]]:
    """Returns parameters of the messages that the facts bring."""
    messages = [
        (message, number)
        for number, fact in enumerate(facts, start=1)
        if (message := message_of(fact)) is not None and message.parts
    ]
    return [message_to_row(message, place, number) for place, (message, number) in enumerate(messages)]


def message_of(fact: Fact) -> Message | None:
    """Returns the message that a fact adds to the log; not the input, which has its own way there."""
    match fact:
        case (
            ModelReplied(message=message)
            | ToolsReturned(message=message)
            | Reminded(message=message)
            | MemberSpoke(message=message)
        ):
            return message
        case Compacted(summary=summary):
            return summary
        case UserSpoke() | ModelFailed() | ContextOverflowed() | RunEnded():
            return None
    assert_never(fact)


def step_rows(commit: Commit) -> list[dict[str, Any]]:
    """Returns parameters of the step that the facts begin or end; none when they touch no step."""
    turn = commit.turn
    steps = [fact.step for fact in commit.facts if isinstance(fact, ModelReplied | ModelFailed | ToolsReturned)]
    if not steps and turn.ended is not None:
        # The run ends while a model call or the tools of its last step still run.
        steps = [commit.cut_short or (turn.step if _unanswered(turn) else 0)]
    # Calls of an earlier run have their step there.
    return [_step_row(commit, step) for step in steps[:1] if step]


def _unanswered(turn: Turn) -> bool:
    """Returns whether calls wait for their returns; the end of a run takes them out of `turn.pending`.

    Those of a group's member belong to a step of its own run.
    """
    if turn.settings.options.group is not None:
        return False
    return bool(turn.history and turn.history[-1].run_id == turn.run_id and calls_of(turn.history[-1]))


def _step_row(commit: Commit, step: int) -> dict[str, Any]:
    turn, prompt = commit.turn, commit.prompt
    row: dict[str, Any] = {
        "id": step_id(turn.run_id, step),
        "number": step,
        "status": "success",
        "stop_reason": None,
        "model_handle": turn.settings.model,
        "attempts": turn.attempt,
        "context_window_limit": turn.settings.context_window_limit,
        "usage": {},
        "error": None,
        "prompt_hash": None if prompt is None else prompt.hash.hex(),
        "block_versions": {} if prompt is None else prompt.block_versions,
        "trace_id": commit.trace_id or None,
        "metrics": dict(commit.metrics),
    }
    for fact in commit.facts:
        match fact:
            case ModelReplied():
                row |= {"attempts": fact.attempt, "usage": usage_to_json(fact.usage)}
                row["model_handle"] = fact.handle or row["model_handle"]
                row["status"] = "pending" if turn.pending else "success"
            case ModelFailed():
                row |= {"attempts": fact.attempt, "status": "failed", "error": failure_to_json(fact.failure)}
            case RunEnded(stop_reason=stop_reason, failure=failure):
                row["stop_reason"] = stop_reason.value
                unfinished = commit.cut_short == step or _unanswered(turn)
                if unfinished and stop_reason is not StopReason.REQUIRES_APPROVAL:
                    row["status"] = "cancelled" if stop_reason is StopReason.CANCELLED else "failed"
                    row["error"] = None if failure is None else failure_to_json(failure)
    return row


def ended_columns(turn: Turn) -> tuple[str | None, str | None, dict[str, Any] | None]:
    """Returns stop reason, status and error of the run's row; nulls while it goes on."""
    if turn.ended is None:
        return None, None, None
    failure = turn.ended.failure
    return (
        turn.ended.stop_reason.value,
        status_of(turn.ended.stop_reason).value,
        None if failure is None else failure_to_json(failure),
    )


def pending_columns(turn: Turn) -> tuple[UUID | None, datetime | None]:
    """Returns the message whose calls wait for the client when the run has ended, and when they are answered without
    one.

    They wait whatever the reason of the end: a partial answer whose run was stopped is no whole one.
    """
    message = None if turn.ended is None else pending_message(turn.history)
    if message is None:
        return None, None
    return message.id, due_at(turn.history, message, turn.settings.tool_rules)


def usage_column(turn: Turn) -> dict[str, int]:
    """Returns usage of the run's row."""
    column = usage_to_json(turn.usage) | {"step_count": turn.step}
    return column if turn.context_tokens is None else column | {"context_tokens": turn.context_tokens}


def usage_from_column(column: Mapping[str, Any]) -> tuple[Usage, int, int | None, tuple[UUID, ...]]:
    """Returns usage, steps, tokens in the window and the runs that it began from the run's row."""
    figures = dict(column)
    steps, context_tokens = figures.pop("step_count", 0), figures.pop("context_tokens", None)
    begun = tuple(map(UUID, figures.pop("run_ids", ())))
    return Usage(**figures), steps, context_tokens, begun


def run_view(row: Mapping[str, Any]) -> RunView:
    """Returns a run as its readers see it."""
    return RunView(
        row["id"],
        row["agent_id"],
        row["conversation_id"],
        RunStatus(row["status"]),
        row["fence"],
        row["created_at"],
        stop_reason=None if row["stop_reason"] is None else StopReason(row["stop_reason"]),
        background=row["background"],
        started_at=row["started_at"],
        first_token_at=row["first_token_at"],
        completed_at=row["completed_at"],
    )


def replay(
    run: Mapping[str, Any], facts: Iterable[Mapping[str, Any]], messages: Iterable[Mapping[str, Any]]
) -> list[Event]:
    """Returns the events of a run's stored facts; one that never began has none but its end."""
    by_fact = {row["fact"]: row for row in messages}
    events: list[Event] = []
    outputs: list[dict[str, Any]] = []
    for fact in facts:
        if given := fact["body"].get("outputs"):
            outputs.append({"message_id": fact["body"]["message_id"], **given})
        if fact["kind"] in SHOWN_KINDS and fact["number"] in by_fact:
            if (attempt := fact["body"].get("attempt", 1)) > 1:
                # What a reader saw of the attempts before is void; the place of the last delta tells who must know.
                step = step_id(run["id"], fact["body"]["step"])
                events.append(Abandoned(fact["sequence"] - 1, step, None, attempt - 1))
            events += show(message_from_row(by_fact[fact["number"]]), fact["sequence"])
        elif fact["kind"] == "run_ended":
            failure = fact["body"]["failure"]
            cause = None if failure is None else failure_from_json(failure)
            events.append(replace(_end_event(run, fact["sequence"], cause), outputs=tuple(outputs)))
    if run["completed_at"] is not None and not (events and isinstance(events[-1], Ended)):
        given_up = None if run["error"] is None else failure_from_json(run["error"])
        events.append(_end_event(run, first_sequence(run["fence"] + 1), given_up))
    return events


def _end_event(run: Mapping[str, Any], sequence: int, failure: Failure | None) -> Ended:
    usage, steps, context_tokens, begun = usage_from_column(run["usage"])
    return Ended(sequence, run_view(run), failure, usage, steps, context_tokens, run_ids=begun)
