"""The gateway's copy of the models that there are."""

import asyncio
from typing import Any, cast

import pytest

from gateway import catalogue
from gateway.catalogue import Catalogue
from gateway.peers import Peers
from loci.llm.v1 import model_pb2
from loci.llm.v1.model_service_pb2 import ListEmbeddingModelsResponse, ListModelsResponse
from services.common.context import CallContext, use_context
from services.common.ids import uuid7


class _Stubs:
    ListModels, ListEmbeddingModels = "chat", "embedding"


class _Peers:
    """A model gateway one of whose providers answers from the second time on."""

    models = _Stubs()

    def __init__(self) -> None:
        self.asked = 0

    async def call(self, rpc: Any, request: Any, **_: Any) -> Any:
        if rpc == "embedding":
            return ListEmbeddingModelsResponse()
        self.asked += 1
        if self.asked == 1:
            return ListModelsResponse(unreachable=["openai"])
        return ListModelsResponse(models=[model_pb2.Model(handle="openai/gpt-4o")])


async def test_a_list_that_lacks_a_provider_is_not_kept_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1_000.0]
    monkeypatch.setattr(catalogue, "monotonic", lambda: now[0])
    peers = _Peers()
    models = Catalogue(cast(Peers, peers))
    with use_context(CallContext(uuid7(), uuid7(), "admin", ("agent",))):
        assert (await models.models()).chat == {}
        assert (await models.models()).chat == {}
        now[0] += catalogue.RETRY_SECONDS
        # Nobody waits for the next one, which is under way.
        assert (await models.models()).chat == {}
        for _ in range(5):
            await asyncio.sleep(0)
        now[0] += catalogue.RETRY_SECONDS
        assert set((await models.models()).chat) == {"openai/gpt-4o"}
        assert peers.asked == 2
