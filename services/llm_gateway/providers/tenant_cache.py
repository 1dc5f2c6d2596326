"""The providers of tenants, in memory: no call waits for the database but the first of a tenant.

What was read is looked over every CHECK_SECONDS, for all tenants with one statement, and read again where something
changed; so other replicas' changes are seen within that time. Changes made here are seen at once. A tenant that made no
call for IDLE_SECONDS is forgotten.
"""

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from services.common.errors import Unavailable
from services.llm_gateway.providers.entries import ProviderEntry, ProviderEntryFactory
from services.llm_gateway.providers.model import ProviderStore, StoredProvider
from services.llm_gateway.providers.registry import ProviderRegistry

logger = logging.getLogger(__name__)

CHECK_SECONDS = 5.0
IDLE_SECONDS = 900.0
# The longest wait of a tenant's first call for its providers.
FIRST_SECONDS = 2.0
_AT_ONCE = 5_000


@dataclass(slots=True)
class _Tenant:
    """`read` numbers the reads of it: a slow one does not undo a later one."""

    providers: Mapping[str, ProviderEntry] = field(default_factory=dict)
    used_at: float = 0.0
    read: int = 0


class TenantProviderCache:
    """The providers by name, for each tenant."""

    def __init__(self, store: ProviderStore, factory: ProviderEntryFactory, providers: ProviderRegistry) -> None:
        self._store = store
        self._factory = factory
        self._made = providers
        self._tenants: dict[UUID, _Tenant] = {}
        self._reading: dict[UUID, asyncio.Task[Mapping[str, ProviderEntry]]] = {}
        self._reads = 0

    async def of(self, organization_id: UUID) -> Mapping[str, ProviderEntry]:
        """Returns them from memory; they are read for a tenant's first call. Raises Unavailable."""
        tenant = self._tenants.get(organization_id)
        if tenant is not None:
            tenant.used_at = time.monotonic()
            return tenant.providers
        reading = self._reading.get(organization_id)
        if reading is None:
            reading = asyncio.create_task(self._first(organization_id))
            self._reading[organization_id] = reading
        try:
            async with asyncio.timeout(FIRST_SECONDS):
                return await asyncio.shield(reading)
        except TimeoutError:
            # Of the operator's providers nobody needs to wait for a database that hangs.
            raise Unavailable("the database of the llm gateway does not answer now; try again") from None

    async def read(self, organization_id: UUID) -> Mapping[str, ProviderEntry]:
        """Reads them anew. Raises Unavailable."""
        self._reads += 1
        number = self._reads
        return self._apply(organization_id, await self._store.list(organization_id), number)

    async def check_forever(self) -> None:
        """The background task."""
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            try:
                await self.check()
            except Unavailable as error:
                logger.warning("providers of tenants cannot be looked over now: %s", error.message)

    async def check(self) -> None:
        """Reads anew the tenants that others changed, forgets idle ones. Raises Unavailable."""
        longest_ago = time.monotonic() - IDLE_SECONDS
        for organization_id in [one for one, tenant in self._tenants.items() if tenant.used_at < longest_ago]:
            self._drop(self._tenants.pop(organization_id).providers, {})
        known = list(self._tenants)
        for start in range(0, len(known), _AT_ONCE):
            some = known[start : start + _AT_ONCE]
            marks = await self._store.marks(some)
            for organization_id in some:
                if self._has_changed(organization_id, marks.get(organization_id, {})):
                    await self.read(organization_id)

    def _has_changed(self, organization_id: UUID, marks: Mapping[UUID, object]) -> bool:
        tenant = self._tenants.get(organization_id)
        rows = [one.stored for one in tenant.providers.values() if one.stored is not None] if tenant else []
        return {row.id: row.mark for row in rows} != dict(marks)

    async def _first(self, organization_id: UUID) -> Mapping[str, ProviderEntry]:
        try:
            return await self.read(organization_id)
        finally:
            del self._reading[organization_id]

    def _apply(self, organization_id: UUID, rows: Sequence[StoredProvider], number: int) -> Mapping[str, ProviderEntry]:
        tenant = self._tenants.setdefault(organization_id, _Tenant())
        tenant.used_at = tenant.used_at or time.monotonic()
        if number > tenant.read:
            before = {one.id: one for one in tenant.providers.values()}
            now = [self._factory.of_row(row, before.get(row.id)) for row in rows]
            providers = {one.config.name: one for one in now}
            self._drop(tenant.providers, providers)
            tenant.providers, tenant.read = providers, number
        return tenant.providers

    def _drop(self, before: Mapping[str, ProviderEntry], now: Mapping[str, ProviderEntry]) -> None:
        """Lets go of the clients of providers that are no more."""
        for name, one in before.items():
            if name not in now:
                self._made.discard(one.config)
