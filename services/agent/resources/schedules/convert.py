"""Schedules <-> protobuf."""

from datetime import UTC, datetime

from loci.agent.v1 import message_pb2, message_service_pb2
from loci.agent.v1 import schedule_service_pb2 as wire
from services.agent.convert.inputs import messages_from_proto
from services.agent.convert.options import options_from_proto
from services.agent.convert.parts import content_to_proto
from services.agent.core.messages import Message
from services.agent.resources.schedules.ports import NewSchedule, Schedule, ScheduleTime
from services.common.codec import Codec
from services.common.context import CallContext
from services.common.errors import InvalidArgument
from services.common.ids import from_public, uuid7
from services.common.timestamps import moment_in, timestamp

_ROLES = {"system": message_pb2.MESSAGE_ROLE_SYSTEM, "assistant": message_pb2.MESSAGE_ROLE_ASSISTANT}
_schedules = Codec(Schedule, wire.Schedule, leave=("messages", "options", "when"))


def draft(request: wire.CreateScheduleRequest, context: CallContext) -> NewSchedule:
    """Returns the schedule to store. Raises InvalidArgument."""
    schedule_id = from_public("schedule", request.schedule_id) if request.schedule_id else uuid7()
    scheduled = request.input
    if any(message.answers for message in scheduled.messages):
        raise InvalidArgument("answers to calls cannot be scheduled", reason="MESSAGE_INVALID")
    turn = message_service_pb2.TurnRequest(
        max_steps=scheduled.max_steps if scheduled.HasField("max_steps") else None,
        options=message_service_pb2.TurnOptions(
            callback_url=scheduled.callback_url if scheduled.HasField("callback_url") else None,
            view_json=scheduled.view_json,
        ),
    )
    return NewSchedule(
        organization_id=context.organization_id,
        user_id=context.user_id,
        agent_id=from_public("agent", request.agent_id),
        id=schedule_id,
        messages=messages_from_proto(scheduled.messages, schedule_id, datetime.now(UTC)),
        options=options_from_proto(turn),
        when=_when(request.time),
        ceiling=context.ceiling,
    )


def schedule_to_proto(schedule: Schedule) -> wire.Schedule:
    """Returns a schedule as clients see it."""
    options = schedule.options
    message = _schedules.encode(
        schedule,
        input=wire.ScheduledInput(
            messages=map(_message, schedule.messages),
            max_steps=options.max_steps,
            callback_url=options.callback_url,
            view_json=options.view or "",
        ),
    )
    if schedule.when.cron is not None:
        message.time.cron_expression = schedule.when.cron
    if schedule.when.at is not None:
        message.time.scheduled_at.CopyFrom(timestamp(schedule.when.at))
    return message


def _when(time: wire.ScheduleTime) -> ScheduleTime:
    match time.WhichOneof("when"):
        case "scheduled_at":
            return ScheduleTime(at=moment_in(time, "scheduled_at", _invalid))
        case "cron_expression":
            return ScheduleTime(cron=time.cron_expression)
        case _:
            raise InvalidArgument("give one of scheduled_at and cron_expression", reason="SCHEDULE_INVALID")


def _invalid(name: str, problem: str) -> InvalidArgument:
    return InvalidArgument(f"{name} {problem}", reason="SCHEDULE_INVALID")


def _message(message: Message) -> message_pb2.InputMessage:
    return message_pb2.InputMessage(
        role=_ROLES.get(message.role, message_pb2.MESSAGE_ROLE_USER),
        content=map(content_to_proto, message.parts),
        name=message.name,
        otid=message.otid,
        sender_id=message.sender_id,
    )
