"""Runs calls, each at most once: the receipt is written before and after, and outlives whoever asked.

A call belongs to this process, not to the request that brought it: requests with the same key attach to it. Here is who
may run it; what it needs for that is in `prepare.py`, what happens then in `perform.py`.
"""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass, replace
from uuid import UUID

from services.common.context import current, use_context
from services.common.errors import FailedPrecondition, NotFound, Unavailable
from services.tool_runner.core import receipts
from services.tool_runner.core.model import Call, Receipt, State, Tool
from services.tool_runner.core.schemas import raw_arguments
from services.tool_runner.executions.lease import Lease
from services.tool_runner.executions.output import with_output
from services.tool_runner.executions.perform import CallRunner
from services.tool_runner.executions.ports import CallId, OpenReceipt, OutputStore, ReceiptStore, Reservation
from services.tool_runner.executions.prepare import CallPreparation, PreparedCall
from services.tool_runner.executions.running_call import Cancelled, Execution, Stopping
from services.tool_runner.executions.watch import CallWatcher, Event

_POLL_SECONDS = 0.2
_CANCEL_SECONDS = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionParts:
    """The parts that executions need. At most `at_once` calls run at the same time, the others wait."""

    preparation: CallPreparation
    receipts: ReceiptStore
    outputs: OutputStore
    at_once: int = 8


class ExecutionService:
    """Every call that this process runs, by tenant and key."""

    def __init__(self, parts: ExecutionParts) -> None:
        self._preparation = parts.preparation
        self._receipts = parts.receipts
        self._outputs = parts.outputs
        self._running: dict[CallId, Execution] = {}
        self._lease = Lease(parts.receipts, self._look_after_receipts)
        self._performer = CallRunner(
            parts.preparation, parts.receipts, parts.outputs, self._lease.owner_id, at_once=parts.at_once
        )
        self._watching = CallWatcher(self._running, parts.outputs, self._settled_receipt)

    async def execute(self, organization_id: UUID, call: Call, tool: Tool | None = None) -> Receipt:
        """Runs it, or attaches to it, or returns how it ended; `tool`: for one that is not in the catalogue.

        Raises the statuses of ExecuteTool.
        """
        identity = (organization_id, call.call_key)
        arguments_hash = raw_arguments.hash_arguments(call.arguments)
        execution = self._running.get(identity)
        if execution is None:
            execution = self._begin(identity, call, arguments_hash, tool)
        elif (execution.call.tool_id, execution.arguments_hash) != (call.tool_id, arguments_hash):
            raise _key_reused(call.call_key)
        # The request may go away; the call goes on.
        return await asyncio.shield(execution.task)

    async def cancel(self, organization_id: UUID, call_key: str) -> Receipt:
        """Kills it if it runs, here or elsewhere; a run's call that has not come yet will not run.

        Raises NotFound (CALL_NOT_FOUND) outside of runs.
        """
        identity = (organization_id, call_key)
        if execution := self._running.get(identity):
            execution.interrupt(Cancelled())
            return await asyncio.shield(execution.task)
        run_id = current().run_id
        if await self._read(identity) is None and run_id is not None:
            await self._receipts.forestall(identity, run_id, receipts.forestalled_ending())
        receipt = await self._settled_receipt(organization_id, call_key)
        if receipt.state in (State.DONE, State.UNKNOWN):
            return receipt
        if receipt.owner_alive:
            return await self._cancel_elsewhere(identity)
        await self._receipts.end(identity, receipt.owner_id, receipts.cancelled_ending(receipt.tool_name or "the tool"))
        return await self.receipt(organization_id, call_key)

    def watch(self, organization_id: UUID, call_key: str, after: int) -> AsyncGenerator[Event]:
        """See `CallWatcher.watch`."""
        return self._watching.watch((organization_id, call_key), after)

    async def receipt(self, organization_id: UUID, call_key: str) -> Receipt:
        """Raises NotFound (CALL_NOT_FOUND)."""
        if receipt := await self._read((organization_id, call_key)):
            return receipt
        raise NotFound(f"no call has the key {call_key!r}", reason="CALL_NOT_FOUND")

    async def fence(self, organization_id: UUID, run_id: UUID, fence: int) -> None:
        """Refuses new calls of the run's owners before this fence."""
        await self._receipts.fence(organization_id, run_id, fence)

    async def purge(self, organization_id: UUID, agent_id: UUID) -> int:
        """Erases an agent's receipts; how many."""
        return await self._receipts.purge(organization_id, agent_id)

    async def close(self) -> None:
        """Stops every call: those that began become unknown, the others may run elsewhere."""
        self._performer.closing = True
        running = list(self._running.values())
        for execution in running:
            execution.interrupt(Stopping())
        await asyncio.gather(*(execution.task for execution in running), return_exceptions=True)
        await self._lease.close()

    def _begin(self, identity: CallId, call: Call, arguments_hash: str, tool: Tool | None) -> Execution:
        execution = Execution(call, arguments_hash)
        # Outside of the request's own deadline, which is the caller's patience and not the call's.
        with use_context(current()):
            execution.task = asyncio.create_task(self._drive(identity, execution, tool))
        self._running[identity] = execution

        def forget(task: asyncio.Task[Receipt]) -> None:
            del self._running[identity]
            if execution.printed:
                execution.printed.end()
            if not task.cancelled():
                task.exception()  # told to whoever still waits, or to nobody

        execution.task.add_done_callback(forget)
        return execution

    async def _drive(self, identity: CallId, execution: Execution, tool: Tool | None) -> Receipt:
        prepared = await self._preparation.prepare(identity[0], execution.call, tool)
        if prepared is None:
            return await self._receipt_of_gone_tool(identity, execution)
        try:
            async with self._lease.hold():
                if settled := await self._claim(identity, execution, prepared):
                    return settled
                return await self._performer.perform(identity, execution, prepared)
        except Cancelled:
            return await self._cancel_elsewhere(identity)
        except Stopping:
            raise Unavailable("the tool runner is stopping; ask again") from None

    async def _claim(self, identity: CallId, execution: Execution, prepared: PreparedCall) -> Receipt | None:
        """Returns the receipt that another request or replica brought to its end; None once it is ours to run."""
        tool, call = prepared.work.tool, execution.call
        reservation = Reservation(
            tool_id=tool.id,
            tool_version=tool.version,
            agent_id=call.agent_id,
            arguments_hash=execution.arguments_hash,
            owner_id=self._lease.owner_id,
            limits=vars(prepared.work.limits),
            tool_name=tool.name,
            run_id=call.run_id,
            step_id=call.step_id,
            settings=prepared.fingerprint,
        )
        while not execution.owned:
            if await self._receipts.reserve(identity, reservation):
                execution.owned = True
            elif settled := await self._look(identity, execution, tool):
                return settled
        return None

    async def _look(self, identity: CallId, execution: Execution, tool: Tool) -> Receipt | None:
        """Returns what the receipt that is there already means; None: look again."""
        receipt = await self._read(identity)
        if receipt is None:
            await self._refuse_fenced(identity[0])
            return None
        match receipts.claim_of(receipt, tool.id, execution.arguments_hash, idempotent=tool.idempotent):
            case receipts.Settled():
                return receipt
            case receipts.KeyReused():
                raise _key_reused(identity[1])
            case receipts.Wait():
                await execution.interruptible(asyncio.sleep(_POLL_SECONDS))
            case receipts.Abandon():
                await self._lose(identity, receipt)
            case receipts.TakeOver():
                execution.owned = await self._receipts.take_over(identity, receipt, self._lease.owner_id)
                if not execution.owned:
                    await self._refuse_fenced(identity[0])
        return None

    async def _refuse_fenced(self, organization_id: UUID) -> None:
        if await self._receipts.is_fenced(organization_id):
            raise FailedPrecondition(f"run-{current().run_id} is driven by another replica now", reason="RUN_FENCED")

    async def _read(self, identity: CallId) -> Receipt | None:
        """Reads a receipt. One that this process left open while the database was away is run by nobody."""
        receipt = await self._receipts.read(identity)
        if receipt is None or receipt.owner_id != self._lease.owner_id:
            return receipt
        execution = self._running.get(identity)
        return replace(receipt, owner_alive=execution is not None and execution.owned)

    async def _settled_receipt(self, organization_id: UUID, call_key: str) -> Receipt:
        """Returns the receipt; one that a dead owner had started is lost now. Raises NotFound (CALL_NOT_FOUND)."""
        receipt = await self.receipt(organization_id, call_key)
        if receipt.state is State.STARTED and not receipt.owner_alive:
            await self._lose((organization_id, call_key), receipt)
            return await self.receipt(organization_id, call_key)
        return receipt

    async def _lose(self, identity: CallId, receipt: Receipt) -> None:
        """Ends a call whose owner died while it ran; its stored output is kept."""
        pieces = await self._outputs.after(identity, 0)
        ending = receipts.lost_ending(receipt.tool_name or "the tool")
        await self._receipts.end(identity, receipt.owner_id, with_output(ending, pieces))

    async def _receipt_of_gone_tool(self, identity: CallId, execution: Execution) -> Receipt:
        gone = NotFound(f"Tool tool-{execution.call.tool_id} not found", reason="TOOL_NOT_FOUND")
        receipt = await self._read(identity)
        if receipt is None:
            raise gone
        if (receipt.tool_id, receipt.arguments_hash) != (execution.call.tool_id, execution.arguments_hash):
            raise _key_reused(identity[1])
        if receipt.state in (State.RESERVED, State.STARTED) and receipt.owner_alive:
            raise Unavailable("the call is being run; ask again")
        if receipt.state is State.RESERVED:
            raise gone
        return await self._settled_receipt(*identity)

    async def _cancel_elsewhere(self, identity: CallId) -> Receipt:
        """Asks its owner, and waits a while for it to be done."""
        await self._receipts.request_cancel(identity)
        end = asyncio.get_running_loop().time() + _CANCEL_SECONDS
        receipt = await self.receipt(*identity)
        while receipt.state in (State.RESERVED, State.STARTED) and asyncio.get_running_loop().time() < end:
            await asyncio.sleep(_POLL_SECONDS)
            receipt = await self.receipt(*identity)
        return receipt

    async def _look_after_receipts(self) -> None:
        """Hears cancels, and closes receipts that name us and that nothing here will: the answer to their making was
        lost, and everybody else waits for us.
        """
        for receipt in await self._receipts.open(self._lease.owner_id):
            execution = self._running.get(receipt.call)
            if execution is None:
                await self._close_stray(receipt)
            elif receipt.cancel_requested:
                execution.interrupt(Cancelled())

    async def _close_stray(self, receipt: OpenReceipt) -> None:
        if receipt.state is State.RESERVED:
            await self._receipts.release(receipt.call, self._lease.owner_id)
        else:
            await self._settled_receipt(*receipt.call)


def _key_reused(call_key: str) -> FailedPrecondition:
    return FailedPrecondition(
        f"the call key {call_key!r} belongs to another call; mint a new one", reason="CALL_KEY_REUSED"
    )
