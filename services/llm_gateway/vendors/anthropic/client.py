"""Anthropic and whatever speaks its Messages API, through the `anthropic` SDK's client."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import anthropic

from services.llm_gateway.core.chat import ChatRequest
from services.llm_gateway.core.models import ChatModel, ListedModel, ModelKind
from services.llm_gateway.core.reply_builder import ReplyBuilder
from services.llm_gateway.http.exchange import Call
from services.llm_gateway.http.provider import HttpProvider
from services.llm_gateway.http.routes import Routes, SdkRoutes
from services.llm_gateway.vendors.anthropic.profiles import profile_of
from services.llm_gateway.vendors.anthropic.replies import Reader, read_refusal
from services.llm_gateway.vendors.anthropic.translate import REPLY_TOOL, body_of, count_body_of, replies_by_call

_PATH = "/v1/messages"
_PAGE = 1000
# Ours, and how the models list calls them.
_CAPABILITIES = {"vision": "image_input", "reasoning": "thinking", "structured_output": "structured_outputs"}


class AnthropicProvider(HttpProvider):
    """One endpoint. `config.base_url` ends without the version, as the SDK wants it."""

    @property
    def _is_anthropic(self) -> bool:
        return self._config.is_vendor and self.type == "anthropic"

    @cached_property
    def _routes(self) -> Routes:
        config = self._config
        # The SDK sends the key as a bearer token; compatible servers may know the older header alone.
        headers = {} if config.is_vendor else {"x-api-key": config.api_key}
        if betas := profile_of(config.type).betas:
            headers["anthropic-beta"] = ",".join(betas)
        client = anthropic.AsyncAnthropic(
            api_key=config.api_key,
            base_url=config.base_url,
            max_retries=0,
            default_headers=headers,
            http_client=self._http,
        )
        return SdkRoutes(client, is_operators=self._is_anthropic and config.organization_id is None)

    _read_refusal = staticmethod(read_refusal)

    async def _call(self, request: ChatRequest, model: ChatModel, *, stream: bool) -> Call:
        reply_tool = REPLY_TOOL if replies_by_call(request, model) else ""
        reader = Reader(ReplyBuilder(), reply_tool, profile_of(model.provider_type).origin)
        return Call(_PATH, body_of(request, model, stream=stream), reader, stream)

    async def count_tokens(self, request: ChatRequest, model: ChatModel) -> int | None:
        """See Provider.count_tokens. Compatible servers may not have the route."""
        path, body = f"{_PATH}/count_tokens", count_body_of(request, model)
        return await self._exchange.count(request, path, body, "input_tokens", may_lack=not self._is_anthropic)

    async def list_models(self, timeout: float) -> Sequence[ListedModel]:
        """See Provider.list_models."""
        pages = await self._pages("/v1/models", {"limit": _PAGE}, timeout, _following)
        return [_model(item) for page in pages for item in page.get("data") or () if _is_served(item)]


def _following(page: Mapping[str, Any]) -> Mapping[str, object]:
    return {"after_id": page["last_id"]} if page.get("has_more") and page.get("last_id") else {}


def _is_served(item: Mapping[str, Any]) -> bool:
    return bool(item.get("id")) and item.get("lifecycle") != "retired"


def _model(item: Mapping[str, Any]) -> ListedModel:
    flags = item.get("capabilities") or {}
    capabilities = {
        ours: bool(flags[theirs].get("supported"))
        for ours, theirs in _CAPABILITIES.items()
        if isinstance(flags.get(theirs), dict)
    }
    return ListedModel(
        item["id"],
        item.get("max_input_tokens"),
        item.get("max_tokens"),
        item.get("display_name") or "",
        ModelKind.CHAT,
        capabilities,
    )
