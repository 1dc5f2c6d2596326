"""Jobs."""

from gateway.openapi.schemas import FLAG, MOMENT, OBJECT, TEXT, WHOLE, choice, maybe, record

JOB = record(
    "Job",
    {
        "id": TEXT,
        "job_type": choice("job", "run"),
        "status": maybe(choice("created", "running", "completed", "failed", "pending", "cancelled", "expired")),
        "background": FLAG,
        "metadata": OBJECT,
        **dict.fromkeys(("created_by_id", "last_updated_by_id", "agent_id", "stop_reason"), maybe(TEXT)),
        **dict.fromkeys(("callback_url", "callback_error"), maybe(TEXT)),
        **dict.fromkeys(("created_at", "updated_at", "completed_at", "callback_sent_at"), maybe(MOMENT)),
        **dict.fromkeys(("callback_status_code", "ttft_ns", "total_duration_ns"), maybe(WHOLE)),
    },
)
