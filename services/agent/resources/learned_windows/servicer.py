"""LearnedWindowService."""

from typing import Any

from loci.agent.v1 import learned_window_service_pb2 as wire
from loci.agent.v1 import learned_window_service_pb2_grpc
from services.agent.resources.learned_windows.ports import LearnedWindow, LearnedWindowStore
from services.common.codec import Codec
from services.common.context import current

_windows = Codec(LearnedWindow, wire.LearnedWindow)


class LearnedWindowServicer(learned_window_service_pb2_grpc.LearnedWindowServiceServicer):
    """loci.agent.v1.LearnedWindowService."""

    def __init__(self, windows: LearnedWindowStore) -> None:
        self._windows = windows

    async def ListLearnedWindows(
        self, request: wire.ListLearnedWindowsRequest, context: Any
    ) -> wire.ListLearnedWindowsResponse:
        """Returns those of the caller's tenant."""
        windows = await self._windows.list(current().organization_id)
        return wire.ListLearnedWindowsResponse(windows=map(_windows.encode, windows))

    async def ForgetLearnedWindow(
        self, request: wire.ForgetLearnedWindowRequest, context: Any
    ) -> wire.ForgetLearnedWindowResponse:
        """Forgets one of the caller's tenant."""
        await self._windows.forget(current().organization_id, request.model)
        return wire.ForgetLearnedWindowResponse()
