"""Schedules."""

from gateway.openapi.schemas import FLAG, MOMENT, NUMBER, OBJECT, TEXT, WHOLE, array, choice, maybe, record, some

SCHEDULED = record("ScheduledMessageTime", {"id": TEXT, "next_scheduled_at": maybe(MOMENT)})
SCHEDULE = record(
    "ScheduledMessage",
    {
        "id": TEXT,
        "agent_id": TEXT,
        "message": record(
            "ScheduledInput",
            {
                "messages": array(
                    record(
                        "ScheduledInputMessage",
                        {
                            "type": choice("message"),
                            "role": choice("user", "system", "assistant"),
                            "content": some(TEXT, array(OBJECT)),
                            "name": maybe(TEXT),
                            "otid": maybe(TEXT),
                            "sender_id": maybe(TEXT),
                        },
                    )
                ),
                "max_steps": maybe(WHOLE),
                "callback_url": maybe(TEXT),
                "include_return_message_types": maybe(array(TEXT)),
            },
        ),
        "next_scheduled_time": maybe(MOMENT),
        "schedule": some(
            record("OneTimeSchedule", {"type": choice("one-time"), "scheduled_at": NUMBER}),
            record("RecurringSchedule", {"type": choice("recurring"), "cron_expression": TEXT}),
        ),
        "timezone": TEXT,
        "last_scheduled_time": maybe(MOMENT),
        "last_run_id": maybe(TEXT),
        "last_error": maybe(TEXT),
        "created_at": MOMENT,
    },
)
SCHEDULES = record("ScheduledMessages", {"scheduled_messages": array(SCHEDULE), "has_next_page": FLAG})
DONE = record("Deleted", {"success": choice(True)})
