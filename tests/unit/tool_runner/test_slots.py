"""Who stands in line behind whom."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from uuid import UUID, uuid4

import pytest

from services.common.context import CallContext, use_context
from services.tool_runner.core.model import Call
from services.tool_runner.core.ports import Place
from services.tool_runner.executions import slots as module
from services.tool_runner.executions.running_call import Cancelled, Execution
from services.tool_runner.executions.slots import Slots

_TENANT = uuid4()
_HERE = Place("bubblewrap")
_CALLER = CallContext(_TENANT, UUID(int=2), "user", ("tool_runner",))


def _execution() -> Execution:
    return Execution(Call(call_key="k", tool_id=uuid4(), arguments="{}"), "")


class Line:
    """Calls that hold a slot until `leave`; `inside`: how many do."""

    def __init__(self, slots: Slots) -> None:
        self.inside = 0
        self._slots = slots
        self._leave = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    def enter(self, place: Place, tenant: UUID = _TENANT) -> asyncio.Task[None]:
        self._tasks.append(asyncio.create_task(self._hold(place, tenant)))
        return self._tasks[-1]

    async def leave(self) -> None:
        self._leave.set()
        await asyncio.gather(*self._tasks)

    async def _hold(self, place: Place, tenant: UUID) -> None:
        with use_context(replace(_CALLER, organization_id=tenant)):
            async with self._slots.hold(_execution(), tenant, place):
                self.inside += 1
                await self._leave.wait()


async def _settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


@asynccontextmanager
async def _line(at_once: int) -> AsyncIterator[tuple[Slots, Line]]:
    slots = Slots(at_once)
    line = Line(slots)
    yield slots, line
    await line.leave()
    assert not slots._lines


async def test_calls_that_wait_for_servers_keep_no_call_of_this_machine_waiting() -> None:
    async with _line(1) as (_, line):
        for _ in range(module.MOST_OF_SERVER):
            line.enter(Place("mcp", server="slow"))
        await _settle()
        assert line.inside == module.MOST_OF_SERVER
        line.enter(_HERE)
        line.enter(Place("mcp", server="other"))
        await _settle()
        assert line.inside == module.MOST_OF_SERVER + 2


async def test_a_server_a_tenant_and_this_machine_have_each_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_OF_SERVER", 2)
    monkeypatch.setattr(module, "MOST_OF_TENANT", 3)
    async with _line(1) as (_, line):
        for server in ("one", "one", "one", "two", "two", "two"):
            line.enter(Place("mcp", server=server))
        await _settle()
        assert line.inside == 3  # two of the one, and one of the other
        line.enter(Place("mcp", server="one"), tenant=uuid4())
        await _settle()
        assert line.inside == 4
        for _ in range(2):
            line.enter(_HERE)
        await _settle()
        assert line.inside == 5


async def test_who_is_cancelled_in_line_leaves_it() -> None:
    async with _line(1) as (slots, line):
        line.enter(_HERE)
        await _settle()
        waiting = _execution()
        with use_context(_CALLER):
            task = asyncio.create_task(_enter(slots, waiting))
            await _settle()
            waiting.interrupt(Cancelled())
            with pytest.raises(Cancelled):
                await task


async def _enter(slots: Slots, execution: Execution) -> None:
    async with slots.hold(execution, _TENANT, _HERE):
        raise AssertionError("there is no room")
