"""Devices on several replicas: who is online, and how what is sent at one reaches a device that hangs at another."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, aclosing, suppress
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from services.agent.adapters.streams.notices import PostgresNotices
from services.agent.resources.devices import connections
from services.agent.resources.devices.connections import DeviceConnections
from services.agent.resources.devices.ports import (
    MOST_WAITING,
    Connection,
    Device,
    DeviceList,
    DeviceMessage,
    Registration,
    Source,
)
from services.agent.resources.devices.store import PostgresDevices
from services.common.core.paging import Page
from services.common.database import open_pool
from services.common.engine import make_engine
from services.common.errors import (
    Aborted,
    FailedPrecondition,
    InvalidArgument,
    NotFound,
    ResourceExhausted,
    Unavailable,
)
from services.common.ids import uuid7
from tests.polling import until

ORGANIZATION, USER = uuid7(), uuid7()


@dataclass
class Replica:
    """The devices' side of a replica of the agent service."""

    store: PostgresDevices
    board: DeviceConnections
    hanging: list[asyncio.Task[None]] = field(default_factory=list)

    async def hang(self, connection_id: UUID) -> tuple[Connection, list[DeviceMessage]]:
        """A device that hangs here; what it gets comes into the list."""
        _, connection = await self.store.connect(ORGANIZATION, connection_id)
        got: list[DeviceMessage] = []

        async def listen() -> None:
            async with aclosing(self.board.messages(connection)) as messages:
                async for message in messages:
                    got.append(message)

        self.hanging.append(asyncio.create_task(listen()))
        return connection, got


class World:
    """Replicas on one database."""

    def __init__(self, url: str, pool: asyncpg.Pool, stack: AsyncExitStack) -> None:
        self.url = url
        self.pool = pool
        self._stack = stack

    async def replica(self) -> Replica:
        """One more."""
        engine = make_engine(self.url)
        self._stack.push_async_callback(engine.dispose)
        store = PostgresDevices(self.pool, engine)
        made = Replica(store, DeviceConnections(store))
        tasks = [asyncio.create_task(made.board.run())]

        async def stop() -> None:
            for task in (*tasks, *made.hanging):
                task.cancel()
            await asyncio.gather(*tasks, *made.hanging, return_exceptions=True)

        self._stack.push_async_callback(stop)
        return made


@pytest.fixture
async def world(agent_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    """A database without devices; replicas look for themselves often."""
    monkeypatch.setattr(connections, "LOOK_SECONDS", 0.05)
    async with AsyncExitStack() as stack:
        pool = await open_pool(agent_url, size=6)
        stack.push_async_callback(pool.close)
        await pool.execute("DELETE FROM agent.devices")
        yield World(agent_url, pool, stack)


async def register(replica: Replica, name: str = "laptop", **changes: Any) -> Device:
    """A device."""
    source: Source = changes.pop("source", "remote")
    given: dict[str, Any] = {"metadata": {"os": "linux"}, "connection_id": uuid7(), "user_id": USER} | changes
    return await replica.store.register(Registration(ORGANIZATION, device_id=name, name=name, source=source, **given))


async def arrives(got: list[DeviceMessage], *bodies: dict[str, Any]) -> None:
    """Returns when these came."""
    await until(lambda: [each.body for each in got] == list(bodies))


async def send(replica: Replica, connection_id: UUID, *bodies: dict[str, Any]) -> dict[UUID, Any]:
    """Sends these."""
    messages = {uuid7(): body for body in bodies}
    replica.board.wake(await replica.store.send(ORGANIZATION, connection_id, messages))
    return messages


async def test_what_is_sent_at_one_replica_reaches_a_device_at_another(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "LOOK_SECONDS", 600.0)
    here, there = await world.replica(), await world.replica()
    device = await register(here)
    _, got = await here.hang(device.connection_id)
    # Woken here, found by looking there.
    await send(here, device.connection_id, {"n": 1}, {"n": 2})
    await arrives(got, {"n": 1}, {"n": 2})
    monkeypatch.setattr(connections, "LOOK_SECONDS", 0.05)
    here.hanging.append(asyncio.create_task(here.board.run()))
    await send(there, device.connection_id, {"n": 3})
    await arrives(got, {"n": 1}, {"n": 2}, {"n": 3})
    # Each came once, however often it is looked, until it is acknowledged; then it is gone.
    await there.store.acknowledge(ORGANIZATION, device.connection_id, [each.id for each in got[:2]])
    _, again = await there.hang(device.connection_id)
    await arrives(again, {"n": 3})
    # The connection before is over, wherever it hangs.
    with pytest.raises(Aborted, match="anew"):
        await here.hanging[0]


async def test_a_notice_wakes_the_other_replica(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "LOOK_SECONDS", 600.0)
    here, there = await world.replica(), await world.replica()
    telling, hearing = PostgresNotices(world.url), PostgresNotices(world.url)
    hearing.on_notice = lambda notice, subject_id: here.board.wake(subject_id) if notice == "pushed" else None
    talking = [asyncio.create_task(notices.run()) for notices in (telling, hearing)]
    await asyncio.gather(telling.connected(), hearing.connected())
    device = await register(here)
    _, got = await here.hang(device.connection_id)
    await send(there, device.connection_id, {"n": 1})
    telling.tell("pushed", device.id)
    await arrives(got, {"n": 1})
    for task in talking:
        task.cancel()
    await asyncio.gather(*talking, return_exceptions=True)


async def test_many_messages_come_in_order(world: World) -> None:
    replica = await world.replica()
    device = await register(replica)
    await replica.store.connect(ORGANIZATION, device.connection_id)
    bodies = [{"n": number} for number in range(MOST_WAITING)]
    sent = await send(replica, device.connection_id, *bodies)
    with pytest.raises(ResourceExhausted, match="wait for the device"):
        await send(replica, device.connection_id, {"n": "more"})
    # A request that is repeated is no more.
    await replica.store.send(ORGANIZATION, device.connection_id, sent)
    _, got = await replica.hang(device.connection_id)
    await arrives(got, *bodies)


async def test_a_replica_that_stops_lets_go(world: World) -> None:
    replica = await world.replica()
    await replica.hang((await register(replica)).connection_id)
    await replica.board.drain()
    with pytest.raises(Unavailable):
        await replica.hanging[0]


async def test_a_connection_is_one_devices(world: World) -> None:
    replica = await world.replica()
    device = await register(replica)
    with pytest.raises(InvalidArgument, match="that of another device"):
        await register(replica, "desktop", connection_id=device.connection_id)
    assert (await register(replica, connection_id=device.connection_id)).id == device.id


async def test_who_is_online(world: World) -> None:
    replica = await world.replica()
    device = await register(replica)
    assert not device.online
    with pytest.raises(FailedPrecondition, match="not connected"):
        await send(replica, device.connection_id, {})
    shown, connection = await replica.store.connect(ORGANIZATION, device.connection_id)
    assert shown.online
    # Its replica died without a word.
    await world.pool.execute("UPDATE agent.devices SET heartbeat_at = now() - interval '46 seconds'")
    assert not (await replica.store.get(ORGANIZATION, "laptop")).online
    with pytest.raises(FailedPrecondition):
        await send(replica, device.connection_id, {})
    await replica.store.beat([connection])
    assert (await replica.store.get(ORGANIZATION, "laptop")).online
    # Beats and ends of a connection before mean nothing.
    _, newer = await replica.store.connect(ORGANIZATION, device.connection_id)
    before = await replica.store.get(ORGANIZATION, "laptop")
    await replica.store.beat([connection])
    await replica.store.disconnect(connection)
    assert await replica.store.get(ORGANIZATION, "laptop") == before
    await replica.store.disconnect(newer)
    assert not (await replica.store.get(ORGANIZATION, "laptop")).online


async def test_replicas_beat_for_what_hangs_there(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(connections, "LOOKS_PER_BEAT", 2)
    replica = await world.replica()
    device = await register(replica)
    await replica.hang(device.connection_id)
    await world.pool.execute("UPDATE agent.devices SET heartbeat_at = now() - interval '1 hour'")
    async with asyncio.timeout(60):
        while not (await replica.store.get(ORGANIZATION, "laptop")).online:
            await asyncio.sleep(0.01)


async def test_registering_again_keeps_the_device_and_what_waits_for_it(world: World) -> None:
    replica = await world.replica()
    device = await register(replica)
    await replica.hang(device.connection_id)
    await send(replica, device.connection_id, {"n": 1})
    same = await register(replica, connection_id=device.connection_id)
    assert (same.id, same.online, same.connection_id) == (device.id, True, device.connection_id)
    again = await register(replica, metadata={"os": "darwin"}, source="local")
    assert (again.id, again.online, again.metadata, again.source) == (device.id, False, {"os": "darwin"}, "local")
    assert again.connection_id != device.connection_id
    with suppress(Aborted):
        await replica.hanging[0]
    for call in (
        replica.store.connect(ORGANIZATION, device.connection_id),
        replica.store.acknowledge(ORGANIZATION, device.connection_id, []),
        replica.store.update(ORGANIZATION, device.connection_id, None, {}),
        # Of another tenant.
        replica.store.connect(uuid7(), again.connection_id),
        replica.store.get(uuid7(), "laptop"),
    ):
        with pytest.raises(NotFound):
            await call
    _, got = await replica.hang(again.connection_id)
    await arrives(got, {"n": 1})


async def test_what_a_device_says_of_itself(world: World) -> None:
    store = (replica := await world.replica()).store
    device = await register(replica)
    told = await store.update(ORGANIZATION, device.connection_id, "standard", {"gitBranch": "main"})
    assert (told.current_mode, told.metadata) == ("standard", {"os": "linux", "gitBranch": "main"})
    told = await store.update(ORGANIZATION, device.connection_id, None, {"os": "bsd"})
    assert (told.current_mode, told.metadata) == ("standard", {"os": "bsd", "gitBranch": "main"})
    with pytest.raises(InvalidArgument):
        await store.update(ORGANIZATION, device.connection_id, None, {"much": "x" * 40_000})


async def test_lists(world: World) -> None:
    store = (replica := await world.replica()).store
    made = [await register(replica, f"d{number}", source="local" if number == 3 else "remote") for number in range(5)]
    await store.connect(ORGANIZATION, made[2].connection_id)

    async def names(page: Page, **wanted: Any) -> tuple[list[str], str]:
        found = await store.list(ORGANIZATION, DeviceList(page, **wanted))
        return [each.device_id for each in found.items], found.next_token

    first, token = await names(Page(2))
    assert first == ["d4", "d3"]
    assert (await names(Page(9, token=token)))[0] == ["d2", "d1", "d0"]
    assert (await names(Page(9, after=made[1].id)))[0] == ["d0"]
    assert (await names(Page(9), online_only=True))[0] == ["d2"]
    assert (await names(Page(9), source="local"))[0] == ["d3"]
    assert (await names(Page(9), user_id=uuid7()))[0] == []
    with pytest.raises(NotFound):
        await names(Page(9, after=uuid7()))
