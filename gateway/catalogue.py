"""The models that the gateway knows: one copy per tenant, renewed behind the back of requests."""

import asyncio
import logging
from time import monotonic
from uuid import UUID

from gateway.peers import Peers
from gateway.resources.agents.responses import Models
from loci.llm.v1 import model_service_pb2
from services.common.context import current
from services.common.errors import LociError

logger = logging.getLogger(__name__)

FRESH_SECONDS = 30.0
# After a failure, or while a provider does not answer; agents are shown without what is not known meanwhile.
RETRY_SECONDS = 2.0
_WAIT_SECONDS = 3.0
_MOST_TENANTS = 1_000


class Catalogue:
    """Caches models by tenant. A request waits for the first copy at most 3 s, and for later ones never."""

    def __init__(self, peers: Peers) -> None:
        self._peers = peers
        self._copies: dict[UUID, tuple[Models, float]] = {}
        self._fetches: dict[UUID, asyncio.Task[Models]] = {}

    async def models(self) -> Models:
        """Returns the models of the current tenant; never raises, and may be empty."""
        tenant = current().organization_id
        models, stale_at = self._copies.get(tenant, (None, 0.0))
        if monotonic() < stale_at and models is not None:
            return models
        fetch = self._fetches.get(tenant)
        if fetch is None:
            # The task takes the call context of this request with it.
            fetch = asyncio.create_task(self._fetch(tenant, models))
            self._fetches[tenant] = fetch
        return models if models is not None else await asyncio.shield(fetch)

    def forget(self) -> None:
        """Forgets the current tenant's models, which changed: the next request reads them anew."""
        tenant = current().organization_id
        self._copies.pop(tenant, None)
        # One that is under way may have been answered before the change.
        self._fetches.pop(tenant, None)

    async def _fetch(self, tenant: UUID, old: Models | None) -> Models:
        try:
            models, fresh_for = await self._read()
        except LociError as error:
            logger.warning("the model gateway does not say which models there are: %s", error.reason)
            models, fresh_for = old or Models({}, {}), RETRY_SECONDS
        finally:
            is_last = self._fetches.get(tenant) is asyncio.current_task()
            if is_last:
                del self._fetches[tenant]
        if not is_last:  # forgotten meanwhile
            return models
        if len(self._copies) >= _MOST_TENANTS:
            del self._copies[next(iter(self._copies))]
        self._copies[tenant] = (models, monotonic() + fresh_for)
        return models

    async def _read(self) -> tuple[Models, float]:
        """Returns the models that there are, and the seconds for which that holds."""
        peers = self._peers
        chat, embedding = await asyncio.gather(
            peers.call(peers.models.ListModels, model_service_pb2.ListModelsRequest(), timeout=_WAIT_SECONDS),
            peers.call(
                peers.models.ListEmbeddingModels,
                model_service_pb2.ListEmbeddingModelsRequest(),
                timeout=_WAIT_SECONDS,
            ),
        )
        models = Models(
            {model.handle: model for model in chat.models},
            {model.handle: model for model in embedding.models},
        )
        return models, RETRY_SECONDS if chat.unreachable else FRESH_SECONDS
