"""Vectors of tools, made in the background after writes and at searches.

What lacks one is told by the database, so nothing that a lost replica left is forgotten: the tenant's next search finds
it. Two replicas may make the same vector; stored twice it is the same. A tenant's vectors are made in the name of who
wrote or searched, with the context that came along: this service holds no key that could vouch for a tenant.
"""

import asyncio
import logging
import time
from collections.abc import Sequence
from uuid import UUID

from services.common.context import CallContext, use_context
from services.common.errors import InvalidArgument, LociError
from services.tool_runner.core.model import Tool
from services.tool_runner.tools.search.model import to_embed, unit_vector
from services.tool_runner.tools.search.ports import Embedder, ToolVector, Vectors

EMBED_SECONDS = 20.0
_TOOLS_AT_ONCE = 64
_CALLS_AT_ONCE = 2
_MOST_TENANTS = 1_000
_LONGEST_PAUSE_SECONDS = 60.0
# What a model refuses is found by words; it is not asked for again while this process lives.
_MOST_REFUSED = 1_000

_log = logging.getLogger(__name__)


class VectorFiller:
    """Makes what vectors of `handle` are missing, one tenant at a time in order of their calls."""

    def __init__(self, vectors: Vectors, embedder: Embedder, handle: str) -> None:
        self._vectors = vectors
        self._embedder = embedder
        self._handle = handle
        # Of each tenant who was heard of and not served yet, who asked last.
        self._heard: dict[UUID, CallContext] = {}
        self._work: dict[UUID, asyncio.Task[None]] = {}
        self._slots = asyncio.Semaphore(_CALLS_AT_ONCE)
        self._refused: dict[UUID, int] = {}
        self._is_away = False

    def hear(self, caller: CallContext) -> None:
        """Tools of a tenant may lack vectors. Costs nothing, and may be forgotten."""
        tenant = caller.organization_id
        if tenant not in self._work and len(self._work) >= _MOST_TENANTS:
            return
        self._heard[tenant] = caller
        if tenant not in self._work:
            with use_context(caller):
                self._work[tenant] = asyncio.create_task(self._serve(tenant))

    async def caught_up(self, organization_id: UUID, seconds: float) -> None:
        """Returns when what was missing of a tenant is there, or will not be soon."""
        work = self._work.get(organization_id)
        if work is not None and not self._is_away:
            await asyncio.wait({work}, timeout=seconds)

    async def close(self) -> None:
        """Gives up. Idempotent."""
        work = list(self._work.values())
        for task in work:
            task.cancel()
        await asyncio.gather(*work, return_exceptions=True)

    async def _serve(self, tenant: UUID) -> None:
        try:
            while (caller := self._heard.pop(tenant, None)) is not None:
                with use_context(caller):
                    await self._fill(caller)
        except Exception:  # noqa: BLE001
            # The supervisor of a tenant's vectors: the tenant's next call is another chance.
            _log.exception("vectors of tools could not be made")
        finally:
            del self._work[tenant]

    async def _fill(self, caller: CallContext) -> None:
        failures = 0
        while tools := await self._missing(caller.organization_id):
            try:
                vectors = await self._embed(tools)
            except LociError as error:
                self._is_away, failures = True, failures + 1
                _log.warning("%s made no vectors of tools: %s", self._handle, error.message)
                if not await _rests(failures, caller):
                    return
                continue
            self._is_away, failures = False, 0
            await self._vectors.store(caller.organization_id, self._handle, vectors)

    async def _missing(self, tenant: UUID) -> list[Tool]:
        missing = await self._vectors.missing(tenant, self._handle, _TOOLS_AT_ONCE + len(self._refused))
        return [tool for tool in missing if self._refused.get(tool.id) != tool.version][:_TOOLS_AT_ONCE]

    async def _embed(self, tools: Sequence[Tool]) -> list[ToolVector]:
        """Vectors of all tools but those that the model alone refuses; raises LociError."""
        try:
            async with self._slots:
                vectors = await self._embedder.embed(self._handle, [*map(to_embed, tools)], EMBED_SECONDS)
        except InvalidArgument as error:
            if len(tools) == 1:
                _log.warning("%s has no vector for tool-%s: %s", self._handle, tools[0].id, error.message)
                self._refuse(tools[0])
                return []
            half = len(tools) // 2
            return [*await self._embed(tools[:half]), *await self._embed(tools[half:])]
        vectors_of_tools = []
        for tool, values in zip(tools, vectors, strict=True):
            if (unit := unit_vector(values)) is None:
                self._refuse(tool)
            else:
                vectors_of_tools.append(ToolVector(tool.id, tool.version, unit))
        return vectors_of_tools

    def _refuse(self, tool: Tool) -> None:
        if len(self._refused) >= _MOST_REFUSED:
            del self._refused[next(iter(self._refused))]
        self._refused[tool.id] = tool.version


async def _rests(failures: int, caller: CallContext) -> bool:
    """Waits, longer after each failure; False where the caller's word does not last so long."""
    pause = min(_LONGEST_PAUSE_SECONDS, 2.0**failures)
    if caller.expires_at and time.time() + pause + EMBED_SECONDS > caller.expires_at:
        return False
    await asyncio.sleep(pause)
    return True
