"""AWS Bedrock: Converse for chats with any model, InvokeModel for embeddings."""

import asyncio
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from services.llm_gateway.core.chat import ChatRequest, Embeddings, ToolMode
from services.llm_gateway.core.errors import LlmBadRequest
from services.llm_gateway.core.models import ChatModel, EmbeddingModel, ListedModel
from services.llm_gateway.core.refusals import Caller
from services.llm_gateway.core.reply_builder import ReplyBuilder
from services.llm_gateway.core.tables.bedrock import foundation_id
from services.llm_gateway.http.exchange import Call
from services.llm_gateway.http.provider import HttpProvider
from services.llm_gateway.http.routes import Routes
from services.llm_gateway.vendors.anthropic.translate import REPLY_TOOL
from services.llm_gateway.vendors.bedrock.framing import EventStreamParser
from services.llm_gateway.vendors.bedrock.listing import listed_models
from services.llm_gateway.vendors.bedrock.profiles import profile_of
from services.llm_gateway.vendors.bedrock.replies import Reader, read_refusal
from services.llm_gateway.vendors.bedrock.signing import BedrockRoutes, endpoints, key_setting
from services.llm_gateway.vendors.bedrock.translate import (
    bodies_of,
    body_of,
    count_body_of,
    path_of,
    replies_by_call,
    vectors_in,
)
from services.llm_gateway.vendors.shared.text_thoughts import AUTO, OPTION, TextHabits

_PAGE = 1000
_PROFILE_TYPES = ("SYSTEM_DEFINED", "APPLICATION")
_UNCOUNTED = "support counting tokens"


class BedrockProvider(HttpProvider):
    """Bedrock in one region, or behind a private endpoint."""

    @cached_property
    def _routes(self) -> Routes:
        return BedrockRoutes(self._config)

    @property
    def _caller(self) -> Caller:
        config = self._config
        return Caller(config.name, endpoints(config)[0], key_setting(config), config.url_setting)

    _read_refusal = staticmethod(read_refusal)

    async def _call(self, request: ChatRequest, model: ChatModel, *, stream: bool) -> Call:
        streams = stream and model.capabilities.streaming
        path = path_of(model.name, "converse-stream" if streams else "converse")
        reply_tool = REPLY_TOOL if replies_by_call(request, model) else ""
        builder, may_call = ReplyBuilder(), request.tool_choice is not ToolMode.NONE
        # The reply does not name its model: it is the one that was asked.
        builder.model = model.name
        profile = profile_of(model)
        text = None if profile.claude else self._habits.reader(builder, model.name)
        reader = Reader(builder, profile.signed_by, reply_tool, may_call=may_call, text=text)
        return Call(path, body_of(request, model), reader, streams, EventStreamParser)

    @cached_property
    def _habits(self) -> TextHabits:
        return TextHabits(self._config.options.get(OPTION) or AUTO)

    async def count_tokens(self, request: ChatRequest, model: ChatModel) -> int | None:
        """See Provider.count_tokens. Only some of Claude's models are counted for, by their own id."""
        id = foundation_id(model.name)
        if not id.startswith("anthropic."):
            return None
        try:
            return await self._exchange.count(
                request, path_of(id, "count-tokens"), count_body_of(request, model), "inputTokens"
            )
        except LlmBadRequest as error:
            if _UNCOUNTED in error.message:
                return None
            raise

    async def embed(self, model: EmbeddingModel, texts: Sequence[str]) -> Embeddings:
        """See Provider.embed."""
        path, patience, tokens = path_of(model.name, "invoke"), self._config.reply_seconds, 0

        def count(headers: Mapping[str, str]) -> None:
            nonlocal tokens
            tokens += int(headers.get("x-amzn-bedrock-input-token-count", 0))

        async def invoke(body: bytes) -> Mapping[str, Any]:
            return await self._transport.post(path, body, handle=model.handle, patience=patience, on_headers=count)

        replies = await asyncio.gather(*(invoke(body) for body in bodies_of(model, texts)))
        return self._embeddings(model, texts, [vector for reply in replies for vector in vectors_in(reply)], tokens)

    async def list_models(self, timeout: float) -> Sequence[ListedModel]:
        """See Provider.list_models."""
        models = self._transport.get("/foundation-models", {}, timeout=timeout)
        foundations, *profiles = await asyncio.gather(
            models, *(self._profiles(kind, timeout) for kind in _PROFILE_TYPES)
        )
        return list(listed_models(foundations.get("modelSummaries") or (), [one for some in profiles for one in some]))

    async def _profiles(self, kind: str, timeout: float) -> list[Mapping[str, Any]]:
        query = {"maxResults": _PAGE, "type": kind}
        pages = await self._pages("/inference-profiles", query, timeout, _following)
        return [profile for page in pages for profile in page.get("inferenceProfileSummaries") or ()]


def _following(page: Mapping[str, Any]) -> Mapping[str, object]:
    return {"nextToken": page["nextToken"]} if page.get("nextToken") else {}
