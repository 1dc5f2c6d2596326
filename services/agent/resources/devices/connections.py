"""The connections that hang at this replica: woken when something waits for them, and kept known as connected.

Who sends a message wakes the device where it hangs at the same replica, and tells the others. All of them look for
themselves once a second besides, in one statement for all that hang there.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from uuid import UUID

from services.agent.resources.devices.ports import LOST_SECONDS, Connection, DeviceMessage, DeviceStore
from services.common.errors import Aborted, Unavailable

LOOK_SECONDS = 1.0
LOOKS_PER_BEAT = LOST_SECONDS // 3
# Bodies that are held at the same time for one connection.
_AT_ONCE = 16

_log = logging.getLogger(__name__)


class DeviceConnections:
    """Connections of devices at this replica. `run` looks after them until cancelled."""

    def __init__(self, store: DeviceStore) -> None:
        self._store = store
        self._open: dict[Connection, asyncio.Event] = {}
        self._draining = False

    async def drain(self) -> None:
        """Ends all connections, because this replica stops; devices go to another."""
        self._draining = True
        for event in self._open.values():
            event.set()

    def wake(self, device_id: UUID) -> None:
        """Tells that something waits for a device, which may hang here."""
        for connection, event in self._open.items():
            if connection.device_id == device_id:
                event.set()

    async def messages(self, connection: Connection) -> AsyncGenerator[DeviceMessage]:
        """Yields the messages that wait for a device, each once, until closed.

        Raises Aborted (DEVICE_REPLACED) when the connection is over by another one, Unavailable when the replica stops.
        """
        with self._listening(connection) as event:
            seen: set[UUID] = set()
            while True:
                event.clear()
                if self._draining:
                    raise Unavailable("this replica stops; connect again")
                waiting = await self._store.waiting_ids(connection)
                if waiting is None:
                    sentence = "the device has connected or registered anew, so this connection is over"
                    raise Aborted(sentence, reason="DEVICE_REPLACED")
                fresh = [each for each in waiting if each not in seen]
                seen = set(waiting)
                for start in range(0, len(fresh), _AT_ONCE):
                    for message in await self._store.read(connection, fresh[start : start + _AT_ONCE]):
                        yield message
                await event.wait()

    async def run(self) -> None:
        """Looks and beats until cancelled."""
        looks = 0
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            looks += 1
            try:
                await self._look(beats=looks % LOOKS_PER_BEAT == 0)
            except Exception:  # noqa: BLE001
                # The supervisor of connections: a database that is away comes back.
                _log.exception("devices could not be looked after")

    async def _look(self, *, beats: bool) -> None:
        if not self._open:
            return
        if beats:
            await self._store.beat(tuple(self._open))
        for connection in await self._store.to_wake(tuple(self._open)):
            if connection in self._open:
                self._open[connection].set()

    @contextmanager
    def _listening(self, connection: Connection) -> Iterator[asyncio.Event]:
        event = self._open[connection] = asyncio.Event()
        try:
            yield event
        finally:
            del self._open[connection]
