"""LM Studio: chats and embeddings by OpenAI's dialect, the list of models by its own."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any

from services.llm_gateway.core.chat import ChatRequest, Completed, Event
from services.llm_gateway.core.errors import LlmContextOverflow, ModelNotFound
from services.llm_gateway.core.models import ChatModel, ListedModel
from services.llm_gateway.vendors.lmstudio.listing import of_v0, of_v1
from services.llm_gateway.vendors.openai.client import LocalProvider

_LISTS = (("/api/v1/models", of_v1), ("/api/v0/models", of_v0))


class LmStudioProvider(LocalProvider):
    """One endpoint; the lists are beside OpenAI's dialect."""

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

    async def list_models(self, timeout: float) -> Sequence[ListedModel]:
        """See Provider.list_models. Without LM Studio's own lists, OpenAI's, which tells names alone."""
        for path, read in _LISTS:
            models = read(await self._get(path, timeout))
            if models is not None:
                return models
        return await self._openai.list_models(timeout)

    async def _get(self, path: str, timeout: float) -> Any:
        try:
            return await self._transport.get(path, {}, timeout=timeout)
        except ModelNotFound:  # no such route
            return None
