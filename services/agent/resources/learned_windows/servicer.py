"""LearnedWindowService."""

from typing import Any

from loci.agent.v1 import learned_window_service_pb2 as wire
from loci.agent.v1 import learned_window_service_pb2_grpc
from services.agent.resources.learned_windows.store import PostgresLearnedWindows
from services.common.context import current
from services.common.timestamps import timestamp


class LearnedWindowServicer(learned_window_service_pb2_grpc.LearnedWindowServiceServicer):
    """loci.agent.v1.LearnedWindowService."""

    def __init__(self, windows: PostgresLearnedWindows) -> None:
        self._windows = windows

    async def ListLearnedWindows(
        self, request: wire.ListLearnedWindowsRequest, context: Any
    ) -> wire.ListLearnedWindowsResponse:
        """Returns those of the caller's tenant."""
        rows = await self._windows.list(current().organization_id)
        windows = (
            wire.LearnedWindow(model=row["model"], tokens=row["tokens"], learned_at=timestamp(row["learned_at"]))
            for row in rows
        )
        return wire.ListLearnedWindowsResponse(windows=windows)

    async def ForgetLearnedWindow(
        self, request: wire.ForgetLearnedWindowRequest, context: Any
    ) -> wire.ForgetLearnedWindowResponse:
        """Returns one of the caller's tenant."""
        await self._windows.forget(current().organization_id, request.model)
        return wire.ForgetLearnedWindowResponse()
