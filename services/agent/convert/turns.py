"""Events of a turn -> protobuf, and requests for a turn <- protobuf."""

import hashlib
import time
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, assert_never
from uuid import UUID

import orjson

from loci.agent.v1 import agent_pb2, message_service_pb2, run_pb2
from services.agent.convert.authority import check_authority
from services.agent.convert.inputs import messages_from_proto
from services.agent.convert.messages import delta_to_proto, event_to_message, piece_to_proto
from services.agent.convert.options import compaction_from_proto, options_from_proto
from services.agent.core.events import Abandoned, Compacting, Delta, Ended, Event, MessagePiece, RunView
from services.agent.core.facts import Failure, Options, Usage
from services.agent.core.ports_journal import OnBusy, TurnRequest
from services.common.context import CallContext
from services.common.errors import DeadlineExceeded, InvalidArgument
from services.common.ids import from_public, to_public, uuid7
from services.common.timestamps import timestamp

_ON_BUSY: dict[int, OnBusy] = {
    message_service_pb2.ON_BUSY_WAIT: "wait",
    message_service_pb2.ON_BUSY_REJECT: "reject",
    message_service_pb2.ON_BUSY_INTERRUPT: "interrupt",
}
# The range of google.protobuf.Duration.
MOST_SECONDS = 315_576_000_000


def turn_request(wire: message_service_pb2.TurnRequest, context: CallContext, *, longest_seconds: float) -> TurnRequest:
    """Returns a request for a turn. Raises InvalidArgument, PermissionDenied (ROLE_NOT_PERMITTED)."""
    check_authority(wire, context)
    agent_id = from_public("agent", wire.agent_id)
    conversation_id = from_public("conv", wire.conversation_id) if wire.conversation_id else agent_id
    run_id = from_public("run", wire.run_id) if wire.run_id else uuid7()
    seconds = wire.timeout.seconds + wire.timeout.nanos / 1e9 if wire.HasField("timeout") else longest_seconds
    if not 0 < seconds <= MOST_SECONDS:
        sentence = f"timeout must be above 0 s and at most {MOST_SECONDS} s, not {seconds:g} s"
        raise InvalidArgument(sentence, reason="MESSAGE_INVALID")
    return TurnRequest(
        organization_id=context.organization_id,
        user_id=context.user_id,
        agent_id=agent_id,
        conversation_id=conversation_id,
        run_id=run_id,
        messages=messages_from_proto(wire.messages, run_id, datetime.now(UTC)),
        options=options_from_proto(wire),
        seconds=_chain_limit(min(seconds, longest_seconds), context),
        keys=_keys(wire, conversation_id),
        labels=_labels(wire, conversation_id),
        request_hash=wire.retry.request_hash or None,
        is_retry=wire.retry.is_retry,
        ancestors=ancestors_of(context),
        ceiling=context.ceiling,
        on_busy=_ON_BUSY.get(wire.on_busy),
        background=wire.background,
    )


def compaction_request(
    wire: message_service_pb2.CompactConversationRequest, context: CallContext, *, longest_seconds: float
) -> TurnRequest:
    """Returns a request for a compaction: a turn without messages. Raises InvalidArgument."""
    agent_id = from_public("agent", wire.agent_id)
    conversation_id = from_public("conv", wire.conversation_id) if wire.conversation_id else agent_id
    return TurnRequest(
        organization_id=context.organization_id,
        user_id=context.user_id,
        agent_id=agent_id,
        conversation_id=conversation_id,
        run_id=from_public("run", wire.run_id) if wire.run_id else uuid7(),
        messages=(),
        options=Options(compact=compaction_from_proto(wire.compaction_settings_json)),
        seconds=_chain_limit(longest_seconds, context),
        keys=_idempotency_keys(wire.retry, conversation_id),
        request_hash=wire.retry.request_hash or None,
        is_retry=wire.retry.is_retry,
        ancestors=ancestors_of(context),
        ceiling=context.ceiling,
    )


def _chain_limit(seconds: float, context: CallContext) -> float:
    """Returns the time limit, at most the time left for the runs that wait. Raises DeadlineExceeded."""
    left = seconds if context.deadline is None else context.deadline - time.time()
    if left <= 0:
        raise DeadlineExceeded("the time of the run that waits for this one is over")
    return min(seconds, left)


def ancestors_of(context: CallContext) -> tuple[UUID, ...]:
    """Returns the runs that wait for a run that this call begins."""
    return (*context.ancestors, context.run_id) if context.run_id is not None else context.ancestors


def event_to_proto(event: Event, run_id: UUID) -> message_service_pb2.TurnEvent:
    """Returns an event as readers see it."""
    wire = message_service_pb2.TurnEvent(sequence=event.sequence)
    match event:
        case MessagePiece():
            wire.message.CopyFrom(piece_to_proto(event))
        case Delta():
            wire.delta.CopyFrom(delta_to_proto(event, run_id))
        case Abandoned():
            wire.attempt_abandoned.step_id = to_public("step", event.step_id)
            wire.attempt_abandoned.attempt = event.attempt
            if event.message_id is not None:
                wire.attempt_abandoned.message_id = to_public("message", event.message_id)
        case Compacting():
            wire.notice.CopyFrom(event_to_message(event))
        case Ended():
            wire.end.CopyFrom(end_to_proto(event))
        case _:
            assert_never(event)
    return wire


def first_event(run_id: UUID, *, started: bool, view: str = "") -> message_service_pb2.TurnEvent:
    """Returns the first event of a stream."""
    run = message_service_pb2.RunAttached(run_id=to_public("run", run_id), started=started, view_json=view)
    return message_service_pb2.TurnEvent(attached=run)


def end_to_proto(event: Ended) -> message_service_pb2.TurnEnd:
    """Returns how a turn ended."""
    run = run_to_proto(event.run)
    end = message_service_pb2.TurnEnd(
        run=run,
        stop_reason=run.stop_reason,
        usage=usage_to_proto(event.usage, event.steps, event.context_tokens, event.run_ids),
    )
    if event.failure is not None:
        end.error.CopyFrom(_failure(event.failure))
    if event.outputs:
        end.turns_json = orjson.dumps(list(map(_turn_outputs, event.outputs))).decode()
        if (logprobs := event.outputs[-1].get("logprobs")) is not None:
            end.logprobs_json = orjson.dumps(logprobs).decode()
    return end


def _turn_outputs(outputs: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a reply's entry in the reference's `turns`."""
    return {
        "role": "assistant",
        "output_ids": outputs.get("output_ids"),
        "output_token_logprobs": outputs.get("output_token_logprobs"),
        "content": outputs.get("content"),
        "tool_name": None,
    }


def run_to_proto(run: RunView) -> run_pb2.Run:
    """Returns a run as clients see it."""
    wire = run_pb2.Run(
        id=to_public("run", run.id),
        agent_id=to_public("agent", run.agent_id),
        conversation_id="" if run.conversation_id == run.agent_id else to_public("conv", run.conversation_id),
        status=run_pb2.RunStatus.Value(f"RUN_STATUS_{run.status.name}"),
        background=run.background,
        created_at=timestamp(run.created_at),
        fence=run.fence,
    )
    if run.stop_reason is not None:
        wire.stop_reason = agent_pb2.StopReason.Value(f"STOP_REASON_{run.stop_reason.name}")
    if run.started_at is not None:
        wire.started_at.FromDatetime(run.started_at)
    if run.first_token_at is not None:
        wire.ttft_ns = _nanoseconds(run.created_at, run.first_token_at)
    if run.completed_at is not None:
        wire.completed_at.FromDatetime(run.completed_at)
        wire.total_duration_ns = _nanoseconds(run.created_at, run.completed_at)
    return wire


def usage_to_proto(
    usage: Usage, steps: int, context_tokens: int | None, run_ids: Iterable[UUID] = ()
) -> message_service_pb2.TurnUsage:
    """Returns tokens of a run."""
    return message_service_pb2.TurnUsage(
        completion_tokens=usage.completion_tokens,
        prompt_tokens=usage.prompt_tokens,
        total_tokens=usage.prompt_tokens + usage.completion_tokens,
        step_count=steps,
        cached_input_tokens=usage.cached_input_tokens,
        cache_write_tokens=usage.cache_write_tokens,
        reasoning_tokens=usage.reasoning_tokens,
        context_tokens=context_tokens,
        run_ids=[to_public("run", run_id) for run_id in run_ids],
    )


def _failure(failure: Failure) -> message_service_pb2.TurnError:
    return message_service_pb2.TurnError(
        error_type=failure.error_type, message=failure.message, detail=failure.detail, reason=failure.reason
    )


def otid_key(conversation_id: UUID, otid: str) -> str:
    """Returns the key by which the newest background run is found that began with a message."""
    return f"otid:{conversation_id}:{hashlib.sha256(otid.encode()).hexdigest()}"


def _keys(wire: message_service_pb2.TurnRequest, conversation_id: UUID) -> tuple[str, ...]:
    """Returns the keys of which each makes another request of the conversation the same request.

    By otids that is only what locks its conversation, in the background: elsewhere a repeated otid is another turn.
    """
    keys = _idempotency_keys(wire.retry, conversation_id)
    otids = _otids(wire)
    if wire.locks and wire.background and otids and len(otids) == len(wire.messages):
        return (f"otids:{conversation_id}:{hashlib.sha256(orjson.dumps(otids)).hexdigest()}", *keys)
    return keys


def _idempotency_keys(retry: message_service_pb2.Retry, conversation_id: UUID) -> tuple[str, ...]:
    if not retry.idempotency_key:
        return ()
    # Of one conversation alone: after a fork a client may say the same again.
    return (f"idempotency:{conversation_id}:{hashlib.sha256(retry.idempotency_key.encode()).hexdigest()}",)


def _labels(wire: message_service_pb2.TurnRequest, conversation_id: UUID) -> tuple[str, ...]:
    if not wire.background:
        return ()
    return tuple(dict.fromkeys(otid_key(conversation_id, otid) for otid in _otids(wire)))


def _otids(wire: message_service_pb2.TurnRequest) -> list[str]:
    return [message.otid for message in wire.messages if message.HasField("otid")]


def _nanoseconds(start: datetime, end: datetime) -> int:
    return max(0, int((end - start).total_seconds() * 1e9))
