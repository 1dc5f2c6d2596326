"""One step's tool calls: what becomes of each, who runs it, and the message that holds their returns."""

import asyncio
import logging
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import partial
from uuid import UUID

from services.agent.calls import dispatch
from services.agent.calls.model_calls import StepMeasures, TurnContext
from services.agent.core.calls.offers import with_group_tools
from services.agent.core.calls.replies import restore_thoughts
from services.agent.core.calls.tool_plans import Plan, in_order, plan, plan_without_tools
from services.agent.core.facts import RunTools, ToolsReturned
from services.agent.core.groups.policy import ASK_MEMBERS
from services.agent.core.messages import Call, Message, Return, storable_part
from services.agent.core.ports import CallSite, ToolInfo
from services.agent.core.ports_agents import AGENT_TOOLS
from services.agent.core.ports_journal import OwnedRun
from services.agent.core.turn import Turn, step_id
from services.agent.core.window.context import UNANSWERED, fully_seen_ids
from services.common.errors import LociError
from services.common.ids import uuid7

# A run that was interrupted waits no longer to hear that its calls were; they are told all the same.
CANCEL_SECONDS = 0.5

_log = logging.getLogger(__name__)


class ToolCalls:
    """Answers the tool calls of one run."""

    def __init__(
        self, owned: OwnedRun, runners: dispatch.ToolRunners, context: TurnContext, measured: StepMeasures
    ) -> None:
        self._owned = owned
        self._runners = runners
        self._context = context
        self._measured = measured
        self._deadline = time.time() + owned.seconds_left
        # Of the calls that run: what becomes of each, and the returns that are there, by place.
        self._plan = Plan(())
        self._returned: dict[int, Return] = {}

    async def perform(self, turn: Turn, action: RunTools) -> ToolsReturned:
        """Returns the returns of all calls; what goes wrong is said in them."""
        began, self._plan, self._returned = time.monotonic_ns(), Plan(()), {}
        try:
            self._plan, attached = await self._planned(turn, action)
            site = self._site(turn, action)
            returns = await dispatch.run_calls(self._plan.calls, site, attached, self._runners, self._returned)
        finally:
            self._measured.metrics["tool_execution_ns"] = time.monotonic_ns() - began
        self._returned = {}
        return self._fact(turn, action, returns)

    async def fence(self) -> None:
        """Has whoever runs calls refuse those that an earlier owner of the run still asks for.

        A service that does not answer does not hold the run up: it can hardly act, and the keys of calls hold.
        """
        telling = {"memory": self._runners.memory.fence(), "the tool runner": self._runners.tools.fence()}
        told = await asyncio.gather(*telling.values(), return_exceptions=True)
        for name, error in zip(telling, told, strict=True):
            if isinstance(error, LociError):
                _log.warning("%s does not know who drives run %s: %s", name, self._owned.run_id, error.message)
            elif error is not None:
                raise error

    async def interrupt(self, turn: Turn, action: RunTools) -> ToolsReturned | None:
        """Kills what runs in sandboxes. What has returned by then is kept; None when nothing has."""
        site = self._site(turn, action)
        await asyncio.gather(*(self._cancel(call, site) for call in action.calls))
        if not self._returned:
            return None
        known = {place: call for place, call in enumerate(self._plan.calls) if isinstance(call, Return)}
        known |= self._returned
        calls = enumerate(action.calls)
        returns = (known.get(place) or Return(call.id, call.name, UNANSWERED, is_error=True) for place, call in calls)
        return self._fact(turn, action, returns)

    def _fact(self, turn: Turn, action: RunTools, returns: Iterable[Return]) -> ToolsReturned:
        parts = tuple(map(storable_part, in_order(action.calls, returns)))
        step = self._site(turn, action).step_id
        message = Message(uuid7(), "tool", parts, datetime.now(UTC), turn.run_id, step)
        return ToolsReturned(action.step, message, self._plan.invalid)

    async def _planned(self, turn: Turn, action: RunTools) -> tuple[Plan, tuple[ToolInfo, ...]]:
        try:
            attached = await self._context.tools
        except LociError as error:
            return plan_without_tools(turn, action, partial(dispatch.no_answer, error=error)), ()
        return plan(turn, action, attached), with_group_tools(attached, turn.settings)

    async def _cancel(self, call: Call, site: CallSite) -> None:
        try:
            async with asyncio.timeout(CANCEL_SECONDS):
                if call.name in AGENT_TOOLS or call.name == ASK_MEMBERS:
                    await self._runners.agents.cancel(call, site)
                await self._runners.tools.cancel(call.key)
        except TimeoutError:
            _log.warning("call %s is being cancelled still", call.key)
        except LociError as error:
            # The run ends all the same; the tool runner has a time limit of its own.
            _log.warning("call %s could not be cancelled: %s", call.key, error.message)

    def _site(self, turn: Turn, action: RunTools) -> CallSite:
        assert turn.reply is not None
        # Calls that waited for the client belong to the step that made them, of an earlier run.
        step = step_id(turn.run_id, action.step) if action.step else turn.reply.message.step_id
        owned = self._owned
        return CallSite(
            owned.organization_id,
            owned.agent_id,
            owned.conversation_id,
            owned.run_id,
            step or step_id(turn.run_id, 0),
            turn.settings,
            self._seen(turn) if any(call.name in dispatch.RECALL_TOOLS for call in action.calls) else (),
            self._deadline,
        )

    def _seen(self, turn: Turn) -> tuple[UUID, ...]:
        own = [message for message in turn.history if message.run_id == turn.run_id]
        return fully_seen_ids(self._context.seen, restore_thoughts(own))
