"""The port of devices, and the values that it takes."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, Protocol
from uuid import UUID

from services.common.core.paging import Page, PageOf

# Messages that wait for a device.
MOST_WAITING = 1_000
# A connection that was not heard of for so long is lost.
LOST_SECONDS = 45

Source = Literal["local", "remote"]


@dataclass(frozen=True, slots=True)
class Registration:
    """The registration of a device. `device_id`: its own name for itself."""

    organization_id: UUID
    user_id: UUID
    device_id: str
    name: str
    source: Source
    metadata: Mapping[str, Any]
    connection_id: UUID


@dataclass(frozen=True, slots=True)
class Device:
    """A device; see the proto."""

    id: UUID
    organization_id: UUID
    user_id: UUID
    device_id: str
    name: str
    source: Source
    connection_id: UUID
    online: bool
    connected_at: datetime | None
    heartbeat_at: datetime | None
    current_mode: str | None
    metadata: Mapping[str, Any]
    first_seen_at: datetime
    last_seen_at: datetime


@dataclass(frozen=True, slots=True)
class Connection:
    """One connection of a device; `since` tells it from those before and after it."""

    organization_id: UUID
    device_id: UUID
    since: datetime


@dataclass(frozen=True, slots=True)
class DeviceMessage:
    """A message that waits for a device."""

    id: UUID
    body: Mapping[str, Any]
    created_at: datetime


@dataclass(frozen=True, slots=True)
class DeviceList:
    """A filter of devices; None: whichever."""

    page: Page
    online_only: bool = False
    source: Source | None = None
    user_id: UUID | None = None


class DeviceStore(Protocol):
    """Devices of tenants. What takes a connection id raises NotFound (DEVICE_NOT_FOUND) where no device has it."""

    async def register(self, registration: Registration) -> Device:
        """Makes a device known, or known anew: what hung on its connection before is not connected any more.

        Raises InvalidArgument (DEVICE_INVALID) for the connection of another device.
        """
        ...

    async def get(self, organization_id: UUID, device_id: str) -> Device:
        """Returns a device by its own name. Raises NotFound (DEVICE_NOT_FOUND)."""
        ...

    async def list(self, organization_id: UUID, filters: DeviceList) -> PageOf[Device]:
        """Returns a page, the newest first. Raises NotFound (DEVICE_NOT_FOUND), Refused (PAGE_TOKEN_INVALID)."""
        ...

    async def update(
        self, organization_id: UUID, connection_id: UUID, mode: str | None, metadata: Mapping[str, Any]
    ) -> Device:
        """Sets its mode, None: not, and members of its metadata. Raises InvalidArgument (DEVICE_INVALID)."""
        ...

    async def connect(self, organization_id: UUID, connection_id: UUID) -> tuple[Device, Connection]:
        """Marks it as connected from now on, by this connection alone."""
        ...

    async def disconnect(self, connection: Connection) -> None:
        """Marks it as gone, unless it has another connection."""
        ...

    async def beat(self, connections: Collection[Connection]) -> None:
        """Marks these as still there."""
        ...

    async def to_wake(self, connections: Collection[Connection]) -> Sequence[Connection]:
        """Returns those of them for which messages wait, or which are over."""
        ...

    async def waiting_ids(self, connection: Connection) -> Sequence[UUID] | None:
        """Returns the messages that wait for a device, oldest first; None: the connection is over."""
        ...

    async def read(self, connection: Connection, ids: Sequence[UUID]) -> Sequence[DeviceMessage]:
        """Returns those messages that still wait, the oldest first."""
        ...

    async def acknowledge(self, organization_id: UUID, connection_id: UUID, ids: Sequence[UUID]) -> None:
        """Marks these as received by the device."""
        ...

    async def send(
        self, organization_id: UUID, connection_id: UUID, messages: Mapping[UUID, Mapping[str, Any]]
    ) -> UUID:
        """Stores all of these bodies, or none; the device's id.

        Raises FailedPrecondition (DEVICE_OFFLINE), ResourceExhausted (DEVICE_QUEUE_FULL).
        """
        ...
