"""The ports of schedules, and the values that they take."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol
from uuid import UUID

from services.agent.core.facts import Options
from services.agent.core.messages import Message
from services.common.core.ceiling import Ceiling
from services.common.core.paging import Page, PageOf

# As many of an agent may wait for their time; and as many that are over are kept.
MOST_SCHEDULES = 100


@dataclass(frozen=True, slots=True)
class ScheduleTime:
    """Once at `at`, or by `cron`; one of both is set."""

    at: datetime | None = None
    cron: str | None = None


@dataclass(frozen=True, slots=True)
class NewSchedule:
    """A schedule to store."""

    organization_id: UUID
    user_id: UUID
    agent_id: UUID
    id: UUID
    messages: tuple[Message, ...]
    options: Options
    when: ScheduleTime
    # The most that its runs may do; None: all of the tenant.
    ceiling: Ceiling | None = None


@dataclass(frozen=True, slots=True)
class Schedule:
    """Something that is sent at its time; see the proto. `messages` have ids of no meaning."""

    id: UUID
    agent_id: UUID
    messages: tuple[Message, ...]
    options: Options
    when: ScheduleTime
    timezone: str
    next_at: datetime | None
    last_at: datetime | None
    last_run_id: UUID | None
    last_error: str | None
    created_at: datetime


# The first time of a schedule: given its kind, the agent's time zone and the present. Raises Refused.
FirstTime = Callable[[ScheduleTime, str, datetime], datetime]


class ScheduleStore(Protocol):
    """Schedules of tenants."""

    async def create(self, draft: NewSchedule, first: FirstTime) -> Schedule:
        """Stores one, or finds it where its id is there already.

        Raises NotFound (AGENT_NOT_FOUND), ResourceExhausted (SCHEDULES_TOO_MANY), AlreadyExists (SCHEDULE_ID_TAKEN) and
        what `first` raises.
        """
        ...

    async def get(self, organization_id: UUID, agent_id: UUID, schedule_id: UUID) -> Schedule:
        """Returns it. Raises NotFound (SCHEDULE_NOT_FOUND)."""
        ...

    async def list(self, organization_id: UUID, agent_id: UUID, page: Page) -> PageOf[Schedule]:
        """Returns a page. Raises NotFound (AGENT_NOT_FOUND, SCHEDULE_NOT_FOUND), Refused (PAGE_TOKEN_INVALID)."""
        ...

    async def delete(self, organization_id: UUID, agent_id: UUID, schedule_id: UUID) -> None:
        """Forgets one. Raises NotFound (SCHEDULE_NOT_FOUND)."""
        ...


@dataclass(frozen=True, slots=True)
class Dispatch:
    """The outcome of a due schedule. `successor`: the run that has the turn by that, and the replica to drive
    it (None: any); None where nothing was begun, or it waits in line."""

    organization_id: UUID
    successor: tuple[UUID, UUID | None] | None = None


class DueSchedules(Protocol):
    """Schedules whose time has come, of all tenants."""

    async def send_next(self, seconds: float) -> Dispatch | None:
        """Sends the one that is due for longest, of those that nobody else sends now; None: nothing is due.

        seconds: longest time of its run.
        """
        ...

    async def wait_seconds(self) -> float | None:
        """Returns the seconds until the next one is due; None where nothing is planned."""
        ...
