"""ScheduleService."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from loci.agent.v1 import schedule_service_pb2 as wire
from loci.agent.v1 import schedule_service_pb2_grpc
from services.agent.resources.callbacks.address import check_callback
from services.agent.resources.schedules.convert import draft, schedule_to_proto
from services.agent.resources.schedules.model import check_cron, check_time
from services.agent.resources.schedules.ports import ScheduleStore, ScheduleTime
from services.common.context import current
from services.common.ids import from_public
from services.common.page_requests import page_by_id

_PER_PAGE = 100


class ScheduleServicer(schedule_service_pb2_grpc.ScheduleServiceServicer):
    """loci.agent.v1.ScheduleService. `on_planned`: told that something was; allow_private_urls: as for messages."""

    def __init__(
        self, schedules: ScheduleStore, on_planned: Callable[[], None], *, allow_private_urls: bool = False
    ) -> None:
        self._schedules = schedules
        self._on_planned = on_planned
        self._allow_private_urls = allow_private_urls

    async def CreateSchedule(self, request: wire.CreateScheduleRequest, context: Any) -> wire.CreateScheduleResponse:
        """Plans something."""
        new = draft(request, current())
        if new.options.callback_url is not None:
            await check_callback(new.options.callback_url, allow_private=self._allow_private_urls)
        schedule = await self._schedules.create(new, _first)
        self._on_planned()
        return wire.CreateScheduleResponse(schedule=schedule_to_proto(schedule))

    async def GetSchedule(self, request: wire.GetScheduleRequest, context: Any) -> wire.GetScheduleResponse:
        """Returns one schedule."""
        schedule = await self._schedules.get(current().organization_id, *_ids(request))
        return wire.GetScheduleResponse(schedule=schedule_to_proto(schedule))

    async def ListSchedules(self, request: wire.ListSchedulesRequest, context: Any) -> wire.ListSchedulesResponse:
        """Returns a page."""
        agent_id = from_public("agent", request.agent_id)
        page = page_by_id(request.page, "schedule", _PER_PAGE, ascending=True)
        schedules = await self._schedules.list(current().organization_id, agent_id, page)
        return wire.ListSchedulesResponse(
            schedules=map(schedule_to_proto, schedules.items), next_page_token=schedules.next_token
        )

    async def DeleteSchedule(self, request: wire.DeleteScheduleRequest, context: Any) -> wire.DeleteScheduleResponse:
        """Forgets one."""
        await self._schedules.delete(current().organization_id, *_ids(request))
        return wire.DeleteScheduleResponse()


def _first(when: ScheduleTime, timezone: str, now: datetime) -> datetime:
    if when.cron is not None:
        return check_cron(when.cron, timezone, now)
    assert when.at is not None
    return check_time(when.at, now)


def _ids(request: wire.GetScheduleRequest | wire.DeleteScheduleRequest) -> Any:
    return from_public("agent", request.agent_id), from_public("schedule", request.schedule_id)
