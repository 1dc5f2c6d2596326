"""The memory, tools and recalled passages of a run, asked for when it begins."""

import asyncio
import logging
from typing import TypeVar

from services.agent.calls.model_calls import TurnContext
from services.agent.core.calls.refused_pictures import RefusedPictures
from services.agent.core.ports import Memory, MemoryView, Tools
from services.agent.core.ports_journal import OwnedRun
from services.agent.core.prompt.system_prompt import recall_query
from services.common.errors import LociError

T = TypeVar("T")

_log = logging.getLogger(__name__)


def turn_context(
    owned: OwnedRun,
    memory: Memory,
    tools: Tools,
    view: "asyncio.Future[MemoryView] | None" = None,
    pictures: RefusedPictures | None = None,
) -> TurnContext:
    """Asks for all of it at once; `view`: where memory was asked before, `pictures`: what the process knows of them.

    A group's run asks no model, and for nothing.
    """
    settings = owned.turn.settings
    if settings.options.group is not None:
        return TurnContext(_known(MemoryView()), _known(()))
    if view is None:
        view = asyncio.ensure_future(memory.view(owned.agent_id, owned.conversation_id))
    described = asyncio.ensure_future(tools.describe(settings.tool_ids))
    recalled = None
    if settings.recall_passages and (query := recall_query(owned.turn)):
        recalled = asyncio.ensure_future(_recall(memory, owned, query))
    known = RefusedPictures() if pictures is None else pictures
    return TurnContext(view, described, recalled, owned.prompt, owned.counted, pictures=known)


def _known(value: T) -> "asyncio.Future[T]":
    future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
    future.set_result(value)
    return future


async def _recall(memory: Memory, owned: OwnedRun, query: str) -> tuple[str, ...]:
    try:
        return await memory.recall(owned.agent_id, query, owned.turn.settings.recall_passages)
    except LociError as error:
        # It helps when it is there; the turn goes on without it.
        _log.warning("no passages were recalled: %s", error.message)
        return ()
