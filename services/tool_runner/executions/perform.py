"""A call that is ours to run: placed, started, run, and its end written with all that came of it."""

import asyncio
import logging
import traceback
from uuid import UUID

from services.common.context import current
from services.common.errors import FailedPrecondition, LociError, NotFound, Unavailable
from services.common.ids import uuid7
from services.common.telemetry import span
from services.tool_runner.core import receipts
from services.tool_runner.core.job import Result, SandboxUnavailable
from services.tool_runner.core.masked_results import mask_result
from services.tool_runner.core.model import Ending, NewFile, Receipt, State
from services.tool_runner.core.ports import Place
from services.tool_runner.executions.output import CallOutput
from services.tool_runner.executions.ports import CallId, OutputStore, ReceiptStore
from services.tool_runner.executions.prepare import CallPreparation, PreparedCall
from services.tool_runner.executions.running_call import Cancelled, Execution, Stopping
from services.tool_runner.executions.slots import Slots

_STORE_SECONDS = 1.0
# Most calls end before: nothing of what they print is stored before their end.
_FIRST_OUTPUT_SECONDS = 0.25
_OUTPUT_SECONDS = 0.25
# Results with more characters are looked through in a thread: one of 12 MiB takes seconds.
_LARGE = 32 * 1024
_log = logging.getLogger(__name__)


class CallRunner:
    """Runs the calls that `owner_id` has reserved. `closing`: no more waiting; `at_once`: see `slots`."""

    def __init__(
        self,
        preparation: CallPreparation,
        receipt_store: ReceiptStore,
        outputs: OutputStore,
        owner_id: UUID,
        *,
        at_once: int,
    ) -> None:
        self.closing = False
        self._preparation = preparation
        self._receipts = receipt_store
        self._outputs = outputs
        self._owner_id = owner_id
        self._slots = Slots(at_once)

    async def perform(self, identity: CallId, execution: Execution, prepared: PreparedCall) -> Receipt:
        """Takes a call from reserved to its end. Raises Stopping, and LociError where nothing began."""
        if prepared.problems:
            return await self._end(identity, _refused(prepared))
        name, limits = prepared.work.tool.name, prepared.work.limits
        printed = execution.printed = CallOutput(limits.capture, prepared.mask.stream(), prepared.mask.stream())
        try:
            place = await execution.interruptible(prepared.runner.place(prepared.work.tool))
            async with self._slots.hold(execution, identity[0], place):
                prepared = await self._preparation.load_files(prepared)
                if prepared.problems:
                    return await self._end(identity, _refused(prepared))
                if not await self._receipts.start(identity, self._owner_id, place.name, place.image):
                    return await self._of_another(identity)
                execution.began = True
                result = await execution.interruptible(self._work(identity, prepared, place, printed))
        except Cancelled:
            printed.end()
            return await self._end(identity, printed.complete(receipts.cancelled_ending(name)))
        except Stopping:
            if not execution.began:
                await self._receipts.release(identity, self._owner_id)
                raise
            printed.end()
            return await self._end(identity, printed.complete(receipts.lost_ending(name)))
        except SandboxUnavailable as error:
            await self._receipts.release(identity, self._owner_id)
            problem = f"{name} cannot be run: {prepared.mask.text(str(error))}"
            raise FailedPrecondition(problem, reason="SANDBOX_UNAVAILABLE") from None
        # A supervisor: nothing began, and what a living owner reserves is waited for by everybody else.
        except Exception:
            await self._receipts.release(identity, self._owner_id)
            raise
        printed.end(receipts.with_error_output(prepared.work.tool, result))
        return await self._end(identity, printed.complete(await _ending_of(prepared, result)))

    async def _work(self, identity: CallId, prepared: PreparedCall, place: Place, printed: CallOutput) -> Result:
        keeping = asyncio.create_task(self._keep_output(identity, printed))
        try:
            with span("sandbox run", **{"loci.sandbox": place.name, "loci.tool": prepared.work.tool.name}) as run:
                result = await prepared.runner.run(prepared.work, printed.add)
                run.set_attribute("loci.exit", result.reason.value)
                return result
        except SandboxUnavailable:
            raise
        except LociError as error:
            return receipts.failed_ending(error.message)
        # A supervisor: a runner that fails in an unforeseen way may have acted.
        except Exception as error:  # noqa: BLE001
            _log.error("a runner failed: %s", prepared.mask.text(traceback.format_exc()))
            return receipts.failed_ending(f"the tool runner met an error ({type(error).__name__})")
        finally:
            keeping.cancel()
            await asyncio.gather(keeping, return_exceptions=True)

    async def _keep_output(self, identity: CallId, printed: CallOutput) -> None:
        """Stores the output for those who watch from another replica."""
        await asyncio.sleep(_FIRST_OUTPUT_SECONDS)
        kept = 0
        while True:
            if pieces := printed.pieces[kept:]:
                try:
                    await self._outputs.add(identity, self._owner_id, pieces)
                    kept += len(pieces)
                # A supervisor: the call goes on, and its receipt will have all of it.
                except Exception as error:  # noqa: BLE001
                    _log.warning("output was not kept", extra={"problem": type(error).__name__})
            await asyncio.sleep(_OUTPUT_SECONDS)

    async def _end(self, identity: CallId, ending: Ending) -> Receipt:
        """Writes how it ended, for as long as that takes: a result that is not written is lost."""
        while True:
            try:
                receipt = await self._receipts.end(identity, self._owner_id, ending)
            # A supervisor: whatever keeps the database from answering, the tool has acted.
            except Exception as error:
                if self.closing:
                    raise
                _log.warning("a receipt could not be written", extra={"problem": type(error).__name__})
                await asyncio.sleep(_STORE_SECONDS)
                continue
            return receipt or await self._of_another(identity)

    async def _of_another(self, identity: CallId) -> Receipt:
        """Returns the receipt after our lease had lapsed: another replica has the call now, or wrote its end."""
        if receipt := await self._receipts.read(identity):
            if receipt.state in (State.RESERVED, State.STARTED):
                raise Unavailable("another replica of the tool runner has the call now; ask again")
            return receipt
        raise NotFound(f"the call {identity[1]!r} was erased while it ran", reason="CALL_NOT_FOUND")


def _refused(prepared: PreparedCall) -> Ending:
    return receipts.refused_ending(prepared.work.tool.name, [*map(prepared.mask.text, prepared.problems)])


async def _ending_of(prepared: PreparedCall, result: Result) -> Ending:
    """Returns the end of a call that its runner ended; in a thread where the result is large."""
    error = result.error
    size = len(result.result or "") + sum(len(value) for _, value in result.block_edits)
    size += len(error.message) + len(error.traceback) if error else 0
    try:
        if size > _LARGE:
            return await asyncio.to_thread(_ending, prepared, result)
        return _ending(prepared, result)
    # A supervisor: a result that cannot be told has its call's end told all the same.
    except Exception as failure:  # noqa: BLE001
        _log.error("a result could not be told", extra={"problem": type(failure).__name__})
        return receipts.ending_of(prepared.work.tool, receipts.failed_ending("its result could not be read"))


def _ending(prepared: PreparedCall, result: Result) -> Ending:
    mask = prepared.mask.text
    ending = receipts.ending_of(prepared.work.tool, mask_result(result, mask))
    kept = receipts.files_within(result, prepared.work.limits)
    user_id = current().user_id
    files = [NewFile(id=uuid7(), name=mask(file.name), content=file.content, created_by_id=user_id) for file in kept]
    return receipts.with_files(ending, files, result.files_dropped + len(result.files) - len(files))
