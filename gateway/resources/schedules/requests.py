"""Messages that are sent at their time."""

from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import Field

from gateway.resources.messages.requests import MessageCreate, MessageTypeName, TurnBody
from gateway.rest.body import Body, Int32
from gateway.turns.views import View
from loci.agent.v1 import schedule_service_pb2

# Of times: in milliseconds this was in 1973, in seconds it is in 5138.
_FIRST_MILLISECONDS = 100_000_000_000
# The first moment of the year 10000, in milliseconds.
_TOO_LATE = 253_402_300_800_000


class OneTime(Body):
    """Once, at `scheduled_at`: milliseconds since the epoch; or seconds, where it is below 100,000,000,000."""

    type: Literal["one-time"] = "one-time"
    scheduled_at: Annotated[float, Field(gt=0, lt=_TOO_LATE, allow_inf_nan=False)]

    def time(self) -> schedule_service_pb2.ScheduleTime:
        """Returns the time as a message."""
        seconds = self.scheduled_at / 1000 if self.scheduled_at >= _FIRST_MILLISECONDS else self.scheduled_at
        time = schedule_service_pb2.ScheduleTime()
        time.scheduled_at.FromDatetime(datetime.fromtimestamp(seconds, UTC))
        return time


class Recurring(Body):
    """Again and again, by a cron expression of five fields, in the agent's time zone."""

    type: Literal["recurring"]
    cron_expression: str

    def time(self) -> schedule_service_pb2.ScheduleTime:
        """Returns the time as a message."""
        return schedule_service_pb2.ScheduleTime(cron_expression=self.cron_expression)


class CreateSchedule(Body):
    """Body of agents.schedule.create."""

    messages: Annotated[list[MessageCreate], Field(min_length=1)]
    schedule: OneTime | Recurring
    callback_url: str | None = None
    include_return_message_types: list[MessageTypeName] | None = None
    max_steps: Annotated[Int32, Field(ge=1)] | None = None

    def input(self) -> schedule_service_pb2.ScheduledInput:
        """Returns the scheduled input. Raises InvalidRequest."""
        fields = {"messages": self.messages, "include_return_message_types": self.include_return_message_types}
        turn = TurnBody.model_validate(fields)
        return schedule_service_pb2.ScheduledInput(
            messages=turn.input_messages(),
            max_steps=self.max_steps,
            callback_url=self.callback_url or None,
            view_json=View.of(turn).json,
        )
