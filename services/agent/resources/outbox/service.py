"""Deliveries: what was ordered in a transaction and must happen at least once, here or in another service.

An order is a row of the outbox, written in the transaction that makes it necessary. Every replica looks for orders
that are due; whoever claims one has it for LEASE seconds. What an order does may be repeated without harm, so a
delivery that was lost half-way, or done twice, is none to worry about.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from uuid import UUID

from services.agent.resources.agents.ports import AgentMemories, Eraser, ToolCatalogue
from services.agent.resources.outbox.ports import Outbox, OutboxEntry
from services.common.context import CallContext, Signer, use_context
from services.common.errors import LociError

POLL_SECONDS = 2.0
LEASE_SECONDS = 60.0
LONGEST_PAUSE = 300.0
# An agent whose run still has to stop is looked at again so soon.
_WHILE_RUNNING = 1.0
_MOST = 16
AUDIENCE = ("memory", "llm_gateway", "tool_runner")

logger = logging.getLogger(__name__)

# Whether it is done; False: not yet, for a good reason.
Handler = Callable[[OutboxEntry], Awaitable[bool]]


class OutboxWorker:
    """Delivers orders of the kinds it has handlers for, in the background.

    Calls are made for the tenant of each order, with a context of our own. What is slow has Deliveries of its own.
    """

    def __init__(self, outbox: Outbox, handlers: Mapping[str, Handler], signer: Signer) -> None:
        self._outbox = outbox
        self._handlers = handlers
        self._signer = signer
        self._wake = asyncio.Event()

    def wake(self) -> None:
        """Tells that there is something to deliver: it looks now, not at the next poll."""
        self._wake.set()

    async def run(self) -> None:
        """Delivers until cancelled."""
        while True:
            self._wake.clear()
            try:
                while await self.deliver_due():
                    pass
            except Exception:
                # The supervisor of deliveries: a database that is away comes back, and orders wait there.
                logger.exception("the outbox could not be read")
            try:
                async with asyncio.timeout(POLL_SECONDS):
                    await self._wake.wait()
            except TimeoutError:
                continue

    async def deliver_due(self) -> int:
        """Delivers what is due now, a handful at most; how many orders that were."""
        orders = await self._outbox.claim(list(self._handlers), _MOST, LEASE_SECONDS)
        await asyncio.gather(*map(self._deliver, orders))
        return len(orders)

    async def _deliver(self, order: OutboxEntry) -> None:
        try:
            with use_context(_context(order), signer=self._signer):
                done = await self._handlers[order.kind](order)
        except Exception as error:
            # The supervisor of deliveries: whatever failed is tried again.
            known = isinstance(error, LociError)
            logger.warning("%s of %s failed", order.kind, order.subject_id, exc_info=None if known else error)
            await self._outbox.retry(order, pause(order.attempts), repr(error)[:1_000])
        else:
            await (self._outbox.done(order) if done else self._outbox.retry(order, _WHILE_RUNNING, None))


def handlers(memories: AgentMemories, tools: ToolCatalogue, eraser: Eraser) -> Mapping[str, Handler]:
    """Returns what handles each kind of outbox entry about an agent."""

    async def purge_orphan(order: OutboxEntry) -> bool:
        # A create that was repeated after its agent was there reserves it once more.
        if not await eraser.exists(order.organization_id, order.subject_id):
            await memories.purge(order.subject_id, erase_blocks=True)
            await tools.purge_secrets(order.subject_id)
        return True

    # A run that still goes on may yet write there.
    async def purge_memory(order: OutboxEntry) -> bool:
        if not await eraser.stop(order.organization_id, order.subject_id):
            return False
        await memories.purge(order.subject_id, erase_blocks=False)
        return True

    async def purge_receipts(order: OutboxEntry) -> bool:
        if not await eraser.stop(order.organization_id, order.subject_id):
            return False
        await tools.purge_receipts(order.subject_id)
        return True

    # At once: runs that still go on have no right to them.
    async def purge_secrets(order: OutboxEntry) -> bool:
        await tools.purge_secrets(order.subject_id)
        return True

    async def erase(order: OutboxEntry) -> bool:
        return await eraser.erase(order.organization_id, order.subject_id)

    kinds = (purge_orphan, purge_memory, purge_receipts, purge_secrets, erase)
    return {each.__name__: each for each in kinds}


def pause(attempts: int) -> float:
    """Seconds to wait after the `attempts`th failure: 1, 2, 4 ... up to LONGEST_PAUSE."""
    return min(2.0 ** min(attempts - 1, 20), LONGEST_PAUSE)


def _context(order: OutboxEntry) -> CallContext:
    user_id = UUID(order.payload["user_id"])
    return CallContext(order.organization_id, user_id, "agent", AUDIENCE)
