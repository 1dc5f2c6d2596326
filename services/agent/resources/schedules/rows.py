"""Rows of schedules <-> values."""

from collections.abc import Mapping
from typing import Any

from services.agent.postgres.line import input_from_line
from services.agent.resources.schedules.ports import Schedule, ScheduleTime


def schedule_from_row(row: Mapping[Any, Any]) -> Schedule:
    """Returns a schedule as it is stored. Raises NewerRelease."""
    messages, options = input_from_line(row["schema_version"], row["input"], row["id"])
    return Schedule(
        id=row["id"],
        agent_id=row["agent_id"],
        messages=messages,
        options=options,
        # What comes once is for the same time for ever.
        when=ScheduleTime(cron=row["cron"]) if row["cron"] is not None else ScheduleTime(at=row["due_at"]),
        timezone=row["timezone"],
        next_at=row["next_at"],
        last_at=row["last_at"],
        last_run_id=row["last_run_id"],
        last_error=row["last_error"],
        created_at=row["created_at"],
    )
