"""Schedules as REST shows them."""

from gateway.resources.messages.content import content_to_rest
from gateway.resources.runs.responses import view_of
from gateway.rest.convert import Rest, moment
from loci.agent.v1 import message_pb2, schedule_service_pb2

_ROLES = {
    message_pb2.MESSAGE_ROLE_SYSTEM: "system",
    message_pb2.MESSAGE_ROLE_ASSISTANT: "assistant",
}


def schedule(source: schedule_service_pb2.Schedule) -> Rest:
    """Returns a schedule; what the reference does not know stands at the end."""
    scheduled = source.input
    return {
        "id": source.id,
        "agent_id": source.agent_id,
        "message": {
            "messages": list(map(_message, scheduled.messages)),
            "max_steps": scheduled.max_steps,
            "callback_url": scheduled.callback_url if scheduled.HasField("callback_url") else None,
            "include_return_message_types": view_of(scheduled.view_json).get("types"),
        },
        "next_scheduled_time": moment(source.next_at) if source.HasField("next_at") else None,
        "schedule": _time(source.time),
        "timezone": source.timezone,
        "last_scheduled_time": moment(source.last_at) if source.HasField("last_at") else None,
        "last_run_id": source.last_run_id or None,
        "last_error": source.last_error or None,
        "created_at": moment(source.created_at),
    }


def _time(time: schedule_service_pb2.ScheduleTime) -> Rest:
    if time.WhichOneof("when") == "cron_expression":
        return {"type": "recurring", "cron_expression": time.cron_expression}
    return {"type": "one-time", "scheduled_at": time.scheduled_at.ToMilliseconds()}


def _message(message: message_pb2.InputMessage) -> Rest:
    return {
        "type": "message",
        "role": _ROLES.get(message.role, "user"),
        "content": content_to_rest(message.content),
        "name": message.name if message.HasField("name") else None,
        "otid": message.otid if message.HasField("otid") else None,
        "sender_id": message.sender_id if message.HasField("sender_id") else None,
    }
