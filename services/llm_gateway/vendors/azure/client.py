"""Azure OpenAI: OpenAI's dialects at Azure's addresses, through the `openai` SDK's client for Azure."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

import openai

from services.llm_gateway.core.errors import LlmAuthentication, LlmConnection, LlmError, LlmRateLimit, LlmTimeout
from services.llm_gateway.core.models import ChatModel, ListedModel
from services.llm_gateway.core.provider_config import ProviderConfig
from services.llm_gateway.http.routes import Routes, SdkRoutes
from services.llm_gateway.http.transport import Transport
from services.llm_gateway.vendors.azure.addresses import LISTING_VERSION, Addresses
from services.llm_gateway.vendors.azure.replies import deployments, models, read_refusal
from services.llm_gateway.vendors.openai.client import OpenAIProvider
from services.llm_gateway.vendors.responses.client import Responses
from services.llm_gateway.vendors.shared.origins import AZURE

# Errors that another address of the same resource would give, too.
_SAME_EVERYWHERE = (LlmAuthentication, LlmConnection, LlmRateLimit, LlmTimeout)


class AzureProvider(OpenAIProvider):
    """One resource; its models are its deployments. See addresses.py for what `config.base_url` may be."""

    def __init__(self, config: ProviderConfig) -> None:
        # It refuses what OpenAI refuses, not what compatible servers take beside.
        super().__init__(replace(config, is_vendor=True))
        self._addresses = Addresses.of(config.base_url, config.api_version)

    @cached_property
    def _routes(self) -> Routes:
        return self._routes_to(self._addresses.base_url)

    _read_refusal = staticmethod(read_refusal)

    @cached_property
    def _listing(self) -> Transport:
        return Transport(self._http, self._routes_to(f"{self._addresses.root}/openai"), self._caller, read_refusal)

    @cached_property
    def _responses(self) -> Responses:
        return Responses(
            self._http,
            self._routes,
            self._caller,
            self._config,
            origin=AZURE,
            path=self._addresses.path("/responses"),
            refusal=read_refusal,
        )

    def _routes_to(self, base_url: str) -> Routes:
        key, version = self._config.api_key, self._addresses.version or "v1"
        client = openai.AsyncAzureOpenAI(
            api_key=key, base_url=base_url, api_version=version, max_retries=0, http_client=self._http
        )
        return SdkRoutes(client, is_operators=False)

    def _speaks_responses(self, model: ChatModel) -> bool:
        return self._addresses.has_responses and super()._speaks_responses(model)

    def _path(self, path: str, model: str) -> str:
        return self._addresses.path(path, self._addresses.deployment or model)

    async def list_models(self, timeout: float) -> Sequence[ListedModel]:
        """The deployments, where the resource still lists them to who has a key; else the models of the v1 API, which
        are those that could be deployed: a deployment is then found under its model's name, or by an override."""
        one = self._addresses.deployment
        try:
            reply = await self._listing.get("/deployments", {"api-version": LISTING_VERSION}, timeout=timeout)
            models_of_list = deployments(reply.get("data") or ())
        except _SAME_EVERYWHERE:
            raise
        except LlmError:
            if one:
                return [ListedModel(one)]
            reply = await self._listing.get("/v1/models", {}, timeout=timeout)
            models_of_list = models(reply.get("data") or ())
        return [model for model in models_of_list if model.name == one] or [ListedModel(one)] if one else models_of_list
