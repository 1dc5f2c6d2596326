"""DeviceService."""

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any
from uuid import UUID

from loci.agent.v1 import device_service_pb2 as wire
from loci.agent.v1 import device_service_pb2_grpc
from services.agent.core.ports_streams import Notifier
from services.agent.resources.devices.connections import DeviceConnections
from services.agent.resources.devices.convert import (
    acknowledged_ids,
    changes,
    device_list,
    device_message_to_proto,
    device_to_proto,
    outgoing,
    registration,
)
from services.agent.resources.devices.ports import DeviceStore
from services.common.context import current
from services.common.ids import from_public


class DeviceServicer(device_service_pb2_grpc.DeviceServiceServicer):
    """loci.agent.v1.DeviceService."""

    def __init__(self, devices: DeviceStore, connections: DeviceConnections, notifier: Notifier) -> None:
        self._devices = devices
        self._connections = connections
        self._notifier = notifier

    async def RegisterDevice(self, request: wire.RegisterDeviceRequest, context: Any) -> wire.RegisterDeviceResponse:
        """Registers a device."""
        device = await self._devices.register(registration(request, current()))
        # What hung on its connection before ends now.
        self._stir(device.id)
        return wire.RegisterDeviceResponse(device=device_to_proto(device))

    async def GetDevice(self, request: wire.GetDeviceRequest, context: Any) -> wire.GetDeviceResponse:
        """Returns one, by its own name."""
        device = await self._devices.get(current().organization_id, request.device_id)
        return wire.GetDeviceResponse(device=device_to_proto(device))

    async def ListDevices(self, request: wire.ListDevicesRequest, context: Any) -> wire.ListDevicesResponse:
        """Returns a page."""
        page = await self._devices.list(current().organization_id, device_list(request))
        return wire.ListDevicesResponse(devices=map(device_to_proto, page.items), next_page_token=page.next_token)

    async def UpdateDevice(self, request: wire.UpdateDeviceRequest, context: Any) -> wire.UpdateDeviceResponse:
        """Changes the mode and the metadata of a device."""
        connection_id = from_public("connection", request.connection_id)
        device = await self._devices.update(current().organization_id, connection_id, *changes(request))
        return wire.UpdateDeviceResponse(device=device_to_proto(device))

    async def StreamDeviceMessages(
        self, request: wire.StreamDeviceMessagesRequest, context: Any
    ) -> AsyncIterator[wire.StreamDeviceMessagesResponse]:
        """Streams the messages that wait for a device, as long as it is connected."""
        connection_id = from_public("connection", request.connection_id)
        device, connection = await self._devices.connect(current().organization_id, connection_id)
        # One that hung here or elsewhere ends now.
        self._stir(device.id)
        try:
            yield wire.StreamDeviceMessagesResponse(connected=device_to_proto(device))
            async with aclosing(self._connections.messages(connection)) as messages:
                async for message in messages:
                    yield wire.StreamDeviceMessagesResponse(message=device_message_to_proto(message))
        finally:
            await self._devices.disconnect(connection)

    async def AcknowledgeDeviceMessages(
        self, request: wire.AcknowledgeDeviceMessagesRequest, context: Any
    ) -> wire.AcknowledgeDeviceMessagesResponse:
        """Forgets the messages that a device has received."""
        connection_id = from_public("connection", request.connection_id)
        await self._devices.acknowledge(current().organization_id, connection_id, acknowledged_ids(request))
        return wire.AcknowledgeDeviceMessagesResponse()

    async def SendDeviceMessages(
        self, request: wire.SendDeviceMessagesRequest, context: Any
    ) -> wire.SendDeviceMessagesResponse:
        """Sends messages to a device."""
        connection_id = from_public("connection", request.connection_id)
        self._stir(await self._devices.send(current().organization_id, connection_id, outgoing(request)))
        return wire.SendDeviceMessagesResponse()

    def _stir(self, device_id: UUID) -> None:
        self._connections.wake(device_id)
        self._notifier.tell("pushed", device_id)
