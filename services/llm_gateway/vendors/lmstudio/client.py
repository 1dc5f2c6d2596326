"""LM Studio: chats and embeddings by OpenAI's dialect, the list of models by its own."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import cached_property
from typing import Any

from services.llm_gateway.core.chat import ChatRequest, Completed, Embeddings, Event
from services.llm_gateway.core.errors import LlmContextOverflow, ModelNotFound
from services.llm_gateway.core.models import ChatModel, EmbeddingModel, ListedModel
from services.llm_gateway.core.provider_config import ProviderConfig
from services.llm_gateway.core.refusals import Caller
from services.llm_gateway.http.client import http_client
from services.llm_gateway.http.routes import BearerRoutes
from services.llm_gateway.http.transport import Transport
from services.llm_gateway.vendors.lmstudio.listing import of_v0, of_v1
from services.llm_gateway.vendors.openai.client import OpenAIProvider
from services.llm_gateway.vendors.openai.replies import read_refusal

_LISTS = (("/api/v1/models", of_v1), ("/api/v0/models", of_v0))


class LmStudioProvider:
    """One endpoint. `config.base_url` is without the version: the lists are beside it."""

    def __init__(self, config: ProviderConfig) -> None:
        self.name, self.type, self.endpoint = config.name, config.type, config.base_url
        self._config = config
        self._openai = OpenAIProvider(replace(config, base_url=f"{config.base_url}/v1"))

    @cached_property
    def _transport(self) -> Transport:
        config = self._config
        caller = Caller.of(config)
        return Transport(http_client(config), BearerRoutes.of(config), caller, read_refusal)

    async def generate(self, request: ChatRequest, model: ChatModel, *, stream: bool) -> AsyncGenerator[Event, None]:
        """See Provider.generate."""
        async with aclosing(self._openai.generate(request, model, stream=stream)) as events:
            async for event in events:
                if isinstance(event, Completed):
                    self._check_fits(event, model)
                yield event

    def _check_fits(self, completed: Completed, model: ChatModel) -> None:
        """LM Studio answers a prompt that is longer than the loaded window with nothing at all, as if all were well
        (lmstudio-bug-tracker, issue 2339).
        """
        generation, window = completed.generation, model.context_window
        requested = generation.usage.prompt_tokens
        if generation.message.parts or window is None or requested < window:
            return
        raise LlmContextOverflow(
            f"{self.name} answered nothing: the request ({requested} tokens) does not fit the context window "
            f"({window}) that the model is loaded with.",
            provider=self.name,
            handle=model.handle,
            limit=window,
            requested=requested,
        )

    async def count_tokens(self, request: ChatRequest, model: ChatModel) -> int | None:
        """None: it counts only what it has answered."""
        return None

    async def embed(self, model: EmbeddingModel, texts: Sequence[str]) -> Embeddings:
        """See Provider.embed."""
        return await self._openai.embed(model, texts)

    async def list_models(self, timeout: float) -> Sequence[ListedModel]:
        """See Provider.list_models. Without LM Studio's own lists, OpenAI's, which tells names alone."""
        for path, read in _LISTS:
            models = read(await self._asked(path, timeout))
            if models is not None:
                return models
        return await self._openai.list_models(timeout)

    async def _asked(self, path: str, timeout: float) -> Any:
        try:
            return await self._transport.get(path, {}, timeout=timeout)
        except ModelNotFound:  # no such route
            return None

    async def close(self) -> None:
        """See Provider.close."""
        await self._openai.close()
        if "_transport" in vars(self):
            await self._transport.close()
