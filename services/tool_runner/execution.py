"""Runs calls, each at most once: the receipt is written before and after, and outlives whoever asked.

A call belongs to this process, not to the request that brought it: requests with the same key attach to it.
"""

import asyncio
import logging
from dataclasses import dataclass, replace
from typing import Any, Protocol
from uuid import UUID

from services.common.context import current, use_context
from services.common.errors import FailedPrecondition, NotFound, Unavailable
from services.common.telemetry import span
from services.tool_runner import given, receipts
from services.tool_runner.checking import Refusal, checked_arguments
from services.tool_runner.job import Job, Limits, Result, SandboxUnavailable
from services.tool_runner.lease import Lease
from services.tool_runner.limited import Limited
from services.tool_runner.model import Call, Ending, Receipt, State, Tool, ToolType
from services.tool_runner.ports import CallId, ReceiptStore, Reservation, Sandbox, ToolStore
from services.tool_runner.running import Cancelled, Execution, Stopping

_POLL_SECONDS = 0.2
_CANCEL_SECONDS = 10.0
_STORE_SECONDS = 1.0
_log = logging.getLogger(__name__)


class Sandboxes(Protocol):
    """Which sandbox serves; see `sandboxes.choose.SandboxChoice`."""

    async def get(self) -> Sandbox: ...

    def forget(self, sandbox: Sandbox) -> None: ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What executions need. `limits.seconds` is also the longest that a caller may ask for."""

    tools: ToolStore
    receipts: ReceiptStore
    sandboxes: Sandboxes
    limited: Limited
    limits: Limits
    at_once: int = 8


class Executor:
    """Every call that this process runs, by tenant and key."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._receipts = parts.receipts
        self._running: dict[CallId, Execution] = {}
        self._slots = asyncio.Semaphore(parts.at_once)
        self._lease = Lease(parts.receipts, self._look_for_cancels)
        self._closing = False

    async def execute(self, organization_id: UUID, call: Call) -> Receipt:
        """Run it, or attach to it, or return how it ended. Raises the statuses of ExecuteTool."""
        identity = (organization_id, call.call_key)
        arguments_hash = given.hashed(call.arguments)
        execution = self._running.get(identity)
        if execution is None:
            execution = self._begin(identity, call, arguments_hash)
        elif (execution.call.tool_id, execution.arguments_hash) != (call.tool_id, arguments_hash):
            raise _reused(call.call_key)
        # The request may go away; the call goes on.
        return await asyncio.shield(execution.task)

    async def cancel(self, organization_id: UUID, call_key: str) -> Receipt:
        """Kill it if it runs, here or elsewhere. Raises NotFound (CALL_NOT_FOUND)."""
        identity = (organization_id, call_key)
        if execution := self._running.get(identity):
            execution.interrupt(Cancelled())
            return await asyncio.shield(execution.task)
        found = await self.receipt(organization_id, call_key)
        if found.state in (State.DONE, State.UNKNOWN):
            return found
        if found.owner_alive:
            return await self._cancel_elsewhere(identity)
        if found.state is State.STARTED:
            await self._receipts.end(identity, found.owner_id, receipts.lost("the tool"))
        else:
            await self._receipts.end(identity, found.owner_id, receipts.cancelled("the tool"))
        return await self.receipt(organization_id, call_key)

    async def receipt(self, organization_id: UUID, call_key: str) -> Receipt:
        """Raises NotFound (CALL_NOT_FOUND)."""
        if found := await self._receipts.read((organization_id, call_key)):
            return found
        raise NotFound(f"no call has the key {call_key!r}", reason="CALL_NOT_FOUND")

    async def purge(self, organization_id: UUID, agent_id: UUID) -> int:
        """Erase an agent's receipts; how many."""
        return await self._receipts.purge(organization_id, agent_id)

    async def close(self) -> None:
        """Stop every call: those that began become unknown, the others may run elsewhere."""
        self._closing = True
        running = list(self._running.values())
        for execution in running:
            execution.interrupt(Stopping())
        await asyncio.gather(*(execution.task for execution in running), return_exceptions=True)
        await self._lease.close()
        await self._parts.sandboxes.close()

    def _begin(self, identity: CallId, call: Call, arguments_hash: str) -> Execution:
        execution = Execution(call, arguments_hash)
        # Outside of the request's own deadline, which is the caller's patience and not the call's.
        with use_context(current()):
            execution.task = asyncio.create_task(self._drive(identity, execution))
        self._running[identity] = execution

        def forget(task: asyncio.Task[Receipt]) -> None:
            del self._running[identity]
            if not task.cancelled():
                task.exception()  # told to whoever still waits, or to nobody

        execution.task.add_done_callback(forget)
        return execution

    async def _drive(self, identity: CallId, execution: Execution) -> Receipt:
        call = execution.call
        tool = await self._parts.tools.find(identity[0], call.tool_id)
        if tool is None:
            return await self._receipt_of_gone_tool(identity, execution)
        if tool.tool_type is not ToolType.CUSTOM:
            raise _not_runnable(tool)
        problems: list[str] = []
        arguments: dict[str, Any] = {}
        try:
            arguments = await checked_arguments(tool, call, self._parts.limited)
        except Refusal as refusal:
            problems = refusal.problems
        limits = self._limits_of(call)
        try:
            async with self._lease.held():
                if settled := await self._claim(identity, execution, tool, limits):
                    return settled
                if problems:
                    return await self._end(identity, receipts.refused(tool.name, problems))
                return await self._run(identity, execution, self._job(call, tool, arguments, limits), tool)
        except Cancelled:
            return await self._cancel_elsewhere(identity)
        except Stopping:
            raise Unavailable("the tool runner is stopping; ask again") from None

    async def _claim(self, identity: CallId, execution: Execution, tool: Tool, limits: Limits) -> Receipt | None:
        """The receipt that another request or replica brought to its end; None once it is ours to run."""
        reservation = Reservation(
            tool_id=tool.id,
            tool_version=tool.version,
            agent_id=execution.call.agent_id,
            arguments_hash=execution.arguments_hash,
            owner_id=self._lease.owner_id,
            limits=vars(limits),
        )
        while not execution.owned:
            if await self._receipts.reserve(identity, reservation):
                execution.owned = True
            elif settled := await self._settled(identity, execution, tool):
                return settled
        return None

    async def _settled(self, identity: CallId, execution: Execution, tool: Tool) -> Receipt | None:
        """What the receipt that is there already means; None: look again."""
        found = await self._receipts.read(identity)
        if found is None:
            return None
        match receipts.judge(found, tool.id, execution.arguments_hash, idempotent=tool.idempotent):
            case receipts.Answer():
                return found
            case receipts.Reused():
                raise _reused(identity[1])
            case receipts.Wait():
                await execution.interruptible(asyncio.sleep(_POLL_SECONDS))
            case receipts.Lose():
                await self._receipts.end(identity, found.owner_id, receipts.lost(tool.name))
            case receipts.TakeOver():
                execution.owned = await self._receipts.take_over(identity, found, self._lease.owner_id)
        return None

    async def _run(self, identity: CallId, execution: Execution, job: Job, tool: Tool) -> Receipt:
        """Ours and reserved: start it, end it."""
        owner_id = self._lease.owner_id
        began = False
        try:
            await execution.interruptible(self._slots.acquire())
            try:
                sandbox = await execution.interruptible(self._parts.sandboxes.get())
                began = await self._receipts.start(identity, owner_id, sandbox.name, sandbox.image)
                if not began:  # our lease had lapsed, and somebody took it over
                    return await self.receipt(*identity)
                result = await execution.interruptible(self._in_sandbox(sandbox, job, tool))
            finally:
                self._slots.release()
        except Cancelled:
            return await self._end(identity, receipts.cancelled(tool.name))
        except Stopping:
            if began:
                return await self._end(identity, receipts.lost(tool.name))
            await self._receipts.release(identity, owner_id)
            raise
        except SandboxUnavailable as error:
            await self._receipts.release(identity, owner_id)
            problem = f"{tool.name} cannot be run: {error}"
            raise FailedPrecondition(problem, reason="SANDBOX_UNAVAILABLE") from None
        return await self._end(identity, receipts.ended(tool, result, job.limits))

    async def _in_sandbox(self, sandbox: Sandbox, job: Job, tool: Tool) -> Result:
        with span("sandbox run", **{"loci.sandbox": sandbox.name, "loci.tool": tool.name}) as run:
            try:
                result = await sandbox.run(job)
            except SandboxUnavailable:
                self._parts.sandboxes.forget(sandbox)
                raise
            run.set_attribute("loci.exit", result.reason.value)
            return result

    async def _end(self, identity: CallId, ending: Ending) -> Receipt:
        """Write how it ended, for as long as that takes: a result that is not written is lost."""
        while True:
            try:
                receipt = await self._receipts.end(identity, self._lease.owner_id, ending)
            # A supervisor: whatever keeps the database from answering, the tool has acted.
            except Exception as error:
                if self._closing:
                    raise
                _log.warning("a receipt could not be written", extra={"problem": type(error).__name__})
                await asyncio.sleep(_STORE_SECONDS)
                continue
            # None: whoever took us for dead has written its end already.
            return receipt or await self.receipt(*identity)

    async def _receipt_of_gone_tool(self, identity: CallId, execution: Execution) -> Receipt:
        found = await self._receipts.read(identity)
        if found is None:
            raise NotFound(f"Tool tool-{execution.call.tool_id} not found", reason="TOOL_NOT_FOUND")
        if (found.tool_id, found.arguments_hash) != (execution.call.tool_id, execution.arguments_hash):
            raise _reused(identity[1])
        return found

    async def _cancel_elsewhere(self, identity: CallId) -> Receipt:
        """Ask its owner, and wait a while for it to be done."""
        await self._receipts.request_cancel(identity)
        end = asyncio.get_running_loop().time() + _CANCEL_SECONDS
        found = await self.receipt(*identity)
        while found.state in (State.RESERVED, State.STARTED) and asyncio.get_running_loop().time() < end:
            await asyncio.sleep(_POLL_SECONDS)
            found = await self.receipt(*identity)
        return found

    async def _look_for_cancels(self) -> None:
        owned = [identity for identity, execution in self._running.items() if execution.owned]
        for identity in await self._receipts.cancelled(owned) if owned else []:
            if execution := self._running.get(identity):
                execution.interrupt(Cancelled())

    def _limits_of(self, call: Call) -> Limits:
        most = self._parts.limits.seconds
        return replace(self._parts.limits, seconds=min(call.seconds or most, most))

    def _job(self, call: Call, tool: Tool, arguments: dict[str, Any], limits: Limits) -> Job:
        environment = {"LETTA_TOOL_ID": f"tool-{tool.id}"}
        if call.agent_id:
            environment["LETTA_AGENT_ID"] = f"agent-{call.agent_id}"
        if tool.project_id:
            environment["LETTA_PROJECT_ID"] = tool.project_id
        return Job(tool.source_code, tool.name, arguments, environment | call.environment, limits)


def _reused(call_key: str) -> FailedPrecondition:
    return FailedPrecondition(
        f"the call key {call_key!r} belongs to another call; mint a new one", reason="CALL_KEY_REUSED"
    )


def _not_runnable(tool: Tool) -> FailedPrecondition:
    where = "the agent service" if tool.name == "conversation_search" else "the memory service"
    return FailedPrecondition(
        f"{tool.name} ({tool.tool_type}) is not run in a sandbox; {where} runs it", reason="TOOL_NOT_RUNNABLE"
    )
