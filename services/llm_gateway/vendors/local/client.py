"""The provider `local`: an embedding model on this machine, and perhaps one that compares, each in its process."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path

from services.common.default_embedding import local_name
from services.llm_gateway.core.chat import ChatRequest, Embeddings, Event
from services.llm_gateway.core.errors import (
    LlmBadRequest,
    LlmConnection,
    LlmServerError,
    ModelNotFound,
    ProviderInvalid,
)
from services.llm_gateway.core.models import ChatModel, EmbeddingModel, ListedModel, ModelKind
from services.llm_gateway.core.provider_config import ProviderConfig
from services.llm_gateway.vendors.local.folder import ModelFolder, ModelFolderWrong, read_folder
from services.llm_gateway.vendors.local.hub import HubFailed, fetch, is_hub_name
from services.llm_gateway.vendors.local.process import (
    ModelProcess,
    ModelProcessEnded,
    ModelUnusable,
    default_threads,
)

_MEMORY_MIB = 2_048


class LocalModel:
    """A model by its place: a folder, or its name on a hub. Its process starts at the first call."""

    def __init__(self, place: str, config: ProviderConfig) -> None:
        self.name = local_name(place)
        self._place = place
        self._config = config
        self._process: ModelProcess | None = None
        self._finding = asyncio.Lock()

    @property
    def pid(self) -> int | None:
        """Returns the id of its process, None where none runs."""
        return None if self._process is None else self._process.pid

    def listed(self) -> ListedModel:
        """Returns what is known of it before it is loaded. Raises ProviderInvalid."""
        dimensions = None if self._is_on_hub() else self._read(Path(self._place)).dimensions
        return ListedModel(self.name, kind=ModelKind.EMBEDDING, dimensions=dimensions)

    async def embed(self, texts: Sequence[str]) -> Embeddings:
        """Raises LlmError."""
        process = await self._found()
        try:
            return Embeddings(*await process.embed(texts))
        except (ModelUnusable, ModelProcessEnded) as error:
            raise self._failure(error) from error

    async def compare(self, query: str, texts: Sequence[str]) -> list[float]:
        """Returns how well each text answers the query, 0 to 1. Raises LlmError."""
        process = await self._found()
        try:
            return await process.compare(query, texts)
        except (ModelUnusable, ModelProcessEnded) as error:
            raise self._failure(error) from error

    async def close(self) -> None:
        """Ends its process."""
        if self._process is not None:
            await self._process.close()

    def _is_on_hub(self) -> bool:
        return not Path(self._place).is_dir() and is_hub_name(self._place)

    async def _found(self) -> ModelProcess:
        async with self._finding:
            if self._process is None:
                folder = await asyncio.to_thread(self._folder)
                options = self._config.options
                self._process = ModelProcess(
                    folder,
                    threads=options.get("threads", default_threads()),
                    memory_mib=options.get("memory_mib", _MEMORY_MIB),
                )
        return self._process

    def _folder(self) -> ModelFolder:
        if not self._is_on_hub():
            return self._read(Path(self._place))
        try:
            return self._read(fetch(self._place))
        except HubFailed as error:
            sentence = f"{error}; put its files into a folder, and name that."
            raise LlmConnection(sentence, provider=self._config.name) from error

    def _read(self, folder: Path) -> ModelFolder:
        try:
            return read_folder(folder)
        except ModelFolderWrong as error:
            raise ProviderInvalid(f"{error}.", provider=self._config.name) from error

    def _failure(self, error: ModelUnusable | ModelProcessEnded) -> ProviderInvalid | LlmServerError:
        kind = ProviderInvalid if isinstance(error, ModelUnusable) else LlmServerError
        return kind(f"The model in {self._place} cannot be used: {error}.", provider=self._config.name)


class OnnxProvider:
    """The models of one configuration."""

    def __init__(self, config: ProviderConfig) -> None:
        self.name, self.type, self.endpoint = config.name, config.type, config.base_url
        self._embedding = _model(config, "embedding")
        self._reranker = _model(config, "reranker")

    async def generate(self, request: ChatRequest, model: ChatModel, *, stream: bool) -> AsyncGenerator[Event, None]:
        """See Provider.generate. There is nothing to chat with."""
        for event in self._refused(request):
            yield event

    def _refused(self, request: ChatRequest) -> Sequence[Event]:
        sentence = f"{request.handle} is no chat model; the provider {self.name} embeds."
        raise LlmBadRequest(sentence, provider=self.name, handle=request.handle)

    async def count_tokens(self, request: ChatRequest, model: ChatModel) -> int | None:
        """See Provider.count_tokens."""
        return None

    async def embed(self, model: EmbeddingModel, texts: Sequence[str]) -> Embeddings:
        """See Provider.embed."""
        assert self._embedding is not None
        return await self._embedding.embed(texts)

    async def rerank(self, name: str, query: str, texts: Sequence[str]) -> Sequence[float]:
        """See Reranker.rerank."""
        model = self._reranker
        if model is None or name != model.name:
            known = "it has none" if model is None else f"it has {self.name}/{model.name}"
            sentence = f"{self.name}/{name} is no reranker of the provider {self.name}; {known}."
            raise ModelNotFound(sentence, provider=self.name, handle=f"{self.name}/{name}")
        return await model.compare(query, texts)

    async def list_models(self, timeout: float) -> Sequence[ListedModel]:
        """See Provider.list_models."""
        return [] if self._embedding is None else [await asyncio.to_thread(self._embedding.listed)]

    async def close(self) -> None:
        """See Provider.close."""
        for model in (self._embedding, self._reranker):
            if model is not None:
                await model.close()


def _model(config: ProviderConfig, option: str) -> LocalModel | None:
    place = config.options.get(option)
    return LocalModel(place, config) if place else None
