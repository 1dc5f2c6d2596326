"""Calls that wait for the client: what fits them, answers that came before, and waiting that is given up."""

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid5

from services.agent.core.approvals import (
    Answer,
    ApprovalPending,
    InputFits,
    NothingWaits,
    RepeatedAnswer,
    UnknownCalls,
    Verdict,
    answers_of,
    check_input,
    decline_calls,
    find_repeated_run,
    goes_on_anew,
    pending_message,
    until_last_return,
    waiting_runs,
    was_just_compacted,
)
from services.agent.core.messages import Message
from services.agent.postgres import sql
from services.agent.postgres.conversations import WINDOW_MESSAGES, window
from services.agent.postgres.line import input_from_line
from services.agent.postgres.rows import input_rows, message_from_row
from services.common.errors import Aborted, InvalidArgument
from services.common.ids import to_public, uuid7

_ELSEWHERE = "The conversation goes on from before this call was answered. It was not run here."


class DuplicateRequest(Exception):
    """The request is there already, as run `run_id`; the transaction is rolled back."""

    def __init__(self, run_id: UUID) -> None:
        super().__init__(str(run_id))
        self.run_id = run_id


async def fitting_window(
    connection: Any,
    organization_id: UUID,
    conversation_id: UUID,
    run_id: UUID,
    messages: Sequence[Message],
    *,
    silent: bool,
) -> tuple[tuple[Message, ...], tuple[Message, ...]]:
    """Returns the window of a conversation, and the input as it fits that. `silent`: it says nothing; see
    facts.is_silent.

    Raises Aborted (APPROVAL_PENDING), InvalidArgument (NO_PENDING_APPROVAL, TOOL_CALL_IDS_INVALID).
    """
    history = await window(connection, organization_id, conversation_id)
    verdict = check_input(history, messages, silent=silent)
    if isinstance(verdict, NothingWaits) and was_just_compacted(history):
        # What it answers may stand in the summary.
        rows = await connection.fetch(sql.LOG_TAIL, organization_id, conversation_id, WINDOW_MESSAGES)
        verdict = check_input(until_last_return([message_from_row(row) for row in reversed(rows)]), messages)
    _refuse(verdict)
    if isinstance(verdict, RepeatedAnswer):
        return history, goes_on_anew(messages, run_id, datetime.now(UTC))
    return history, tuple(messages)


async def find_answering_run(
    connection: Any, organization_id: UUID, conversation_id: UUID, active: UUID, answers: Sequence[Answer]
) -> UUID | None:
    """Returns the run that goes on with answers to the same calls, or is about to. Needs the lock of the head."""
    shown = await window(connection, organization_id, conversation_id)
    earlier = [(active, answers_of(message for message in shown if message.run_id == active))]
    for row in await connection.fetch(sql.ANSWERS_IN_LINE, organization_id, conversation_id):
        messages, _ = input_from_line(row["schema_version"], row["input"], row["run_id"])
        earlier.append((row["run_id"], answers_of(messages)))
    return find_repeated_run(answers, earlier)


async def decline(
    connection: Any, organization_id: UUID, conversation_id: UUID, run_ids: Collection[UUID]
) -> Collection[UUID]:
    """Gives up waiting where it is one of the `asked` runs that waits; the runs that are cancelled by that.

    Each call gets a return that says so, in the step that made it. Nothing happens while a run goes on: it has the
    answers. Exactly once, as it takes the lock of the head.
    """
    head = await connection.fetchrow(sql.LOCK_HEAD, organization_id, conversation_id)
    if head is None or head["pending_message_id"] is None or await _goes_on(connection, organization_id, head):
        return ()
    history = await window(connection, organization_id, conversation_id)
    pending = pending_message(history)
    if pending is None or not (waits := waiting_runs(history, pending)) or not set(waits) & set(run_ids):
        return ()
    returns = Message(
        uuid5(pending.id, "declined"),
        "tool",
        decline_calls(history, pending),
        datetime.now(UTC),
        pending.run_id,
        pending.step_id,
    )
    rows = input_rows([returns])
    ids = {"organization_id": organization_id, "conversation_id": conversation_id, "run_id": pending.run_id}
    await connection.execute(*sql.DECLINE.bind(**ids, declined_ids=list(waits), messages=rows))
    return waits


async def wait_or_settle(connection: Any, organization_id: UUID, conversation_id: UUID, *, may_wait: bool) -> None:
    """Lets calls that waited at the conversation's new, earlier end wait again, if they may.

    A call acts at most once, wherever it is answered: where it was answered already, or may be elsewhere, it gets a
    return that says so, and the model may call again.
    """
    history = await window(connection, organization_id, conversation_id)
    pending = pending_message(history)
    if pending is None:
        return
    if may_wait and not await connection.fetchval(sql.HAS_RETURNED, organization_id, pending.step_id):
        await connection.execute(sql.WAIT, organization_id, conversation_id, pending.id)
        return
    parts = decline_calls(history, pending, _ELSEWHERE)
    returns = Message(uuid7(), "tool", parts, datetime.now(UTC), None, pending.step_id)
    ids = {"organization_id": organization_id, "conversation_id": conversation_id, "run_id": None}
    await connection.execute(*sql.DECLINE.bind(**ids, declined_ids=[], messages=input_rows([returns])))


async def _goes_on(connection: Any, organization_id: UUID, head: Mapping[str, Any]) -> bool:
    active = head["active_run_id"]
    return active is not None and await connection.fetchval(sql.GOES_ON, organization_id, active)


def _refuse(verdict: Verdict) -> None:
    match verdict:
        case ApprovalPending(request_id=request_id):
            public = to_public("message", request_id)
            raise Aborted(
                "Cannot send a new message: the agent is waiting for approval on a tool call. "
                "Please approve or deny the pending request before continuing, or give it up with "
                "POST /v1/agents/{agent_id}/messages/cancel.",
                reason="APPROVAL_PENDING",
                metadata={"pending_request_id": public},
            )
        case NothingWaits():
            sentence = (
                "Cannot process approval response: No tool call is currently awaiting approval. "
                "If the last message was sent already, there is nothing left to answer."
            )
            raise InvalidArgument(sentence, reason="NO_PENDING_APPROVAL")
        case UnknownCalls(wanted=wanted, given=given):
            sentence = f"Invalid tool call IDs. Expected '{list(wanted)}', but received '{list(given)}'."
            raise InvalidArgument(sentence, reason="TOOL_CALL_IDS_INVALID")
        case RepeatedAnswer() | InputFits():
            return
