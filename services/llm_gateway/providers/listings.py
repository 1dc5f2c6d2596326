"""The list of models of a provider's endpoint, asked for when it is needed.

An answer is used as it is for FRESH_SECONDS; after that it is used while a new one is fetched, and as long as the
endpoint is away. An endpoint that failed is not asked again for RETRY_SECONDS, so that the creation of agents never
waits for it in a row.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from services.llm_gateway.core.errors import LlmConnection, LlmError
from services.llm_gateway.core.models import ListedModel
from services.llm_gateway.core.overrides import LARGEST_WINDOW, MOST_DIMENSIONS
from services.llm_gateway.core.ports import Provider
from services.llm_gateway.core.provider_config import ProviderConfig
from services.llm_gateway.core.reply_guard import reply_guard
from services.llm_gateway.providers.registry import ProviderRegistry

FRESH_SECONDS = 300.0
RETRY_SECONDS = 10.0
# What is stored and shown of an error.
_LONGEST_ERROR = 500

_LONGEST_NAME = 500
# A dollar for each token, in billionths.
_HIGHEST_PRICE = 1_000_000_000

Keep = Callable[["Listing"], Awaitable[None]]


async def list_models(provider: Provider, config: ProviderConfig, timeout: float) -> Sequence[ListedModel]:
    """Returns the models that the endpoint lists, within `timeout` seconds. Raises LlmError."""
    try:
        async with asyncio.timeout(timeout):
            with reply_guard(config.name, ""):
                return plausible(await provider.list_models(timeout))
    except TimeoutError:
        where = f" ({config.base_url})" if config.base_url else ""
        sentence = f"{config.name}{where} did not list its models within {timeout:g} s."
        raise LlmConnection(sentence, provider=config.name) from None


def plausible(models: Iterable[ListedModel]) -> list[ListedModel]:
    """Returns the models of a list that have a name, without figures that are none. Raises TypeError where a text is
    none.
    """
    return [_plausible(model) for model in models if 0 < len(model.name) <= _LONGEST_NAME and model.name.isprintable()]


def _plausible(model: ListedModel) -> ListedModel:
    texts = (model.display_name, model.base_model)
    if not all(isinstance(text, str) for text in texts):
        raise TypeError("a text is expected")
    price = model.price
    if price is not None and not all(
        value is None or 0 <= value <= _HIGHEST_PRICE
        for value in (price.input, price.output, price.cached_input, price.cache_write)
    ):
        price = None
    return replace(
        model,
        context_window=_figure(model.context_window, LARGEST_WINDOW),
        max_output_tokens=_figure(model.max_output_tokens, LARGEST_WINDOW),
        dimensions=_figure(model.dimensions, MOST_DIMENSIONS),
        display_name=_clip(model.display_name),
        base_model=_clip(model.base_model),
        price=price,
    )


def _figure(value: object, most: int) -> int | None:
    return value if type(value) is int and 0 < value <= most else None


def _clip(text: str) -> str:
    return text[:_LONGEST_NAME].replace("\0", "")


class Listing:
    """The last answer of one endpoint; `models` None: it never answered. `error`: why it did not, the last time.

    `keep` is called after each attempt, to store what came of it.
    """

    def __init__(
        self,
        providers: ProviderRegistry,
        config: ProviderConfig,
        *,
        timeout: float,
        keep: Keep | None = None,
    ) -> None:
        self._providers = providers
        self._config = config
        self._timeout = timeout
        self._keep = keep
        self._asked_at = -1e9
        self._asking: asyncio.Task[None] | None = None
        self.models: Mapping[str, ListedModel] | None = None
        self.synced_at: datetime | None = None
        self.error: LlmError | None = None
        # Lengths of vectors that were measured, by the model's name.
        self.measured: dict[str, int] = {}
        self._measuring: dict[str, asyncio.Task[int]] = {}

    def remember(self, models: Iterable[ListedModel] | None, synced_at: datetime | None) -> None:
        """Sets an answer that was stored."""
        self.models = None if models is None else {model.name: model for model in models}
        self.synced_at = synced_at
        if synced_at is not None:
            age = (datetime.now(UTC) - synced_at).total_seconds()
            self._asked_at = time.monotonic() - max(0.0, age)

    @property
    def by_name(self) -> Mapping[str, ListedModel]:
        """Returns the models by name; none where it never answered."""
        return self.models or {}

    @property
    def failed(self) -> bool:
        """Returns whether the last attempt failed."""
        return self.error is not None

    async def renew(self, *, wait: bool = True, if_older_than: float | None = None) -> None:
        """Asks the endpoint where that is due; with `wait`, waits where there is no earlier answer to use."""
        age = time.monotonic() - self._asked_at
        forced = if_older_than is not None and age > if_older_than
        is_due = age > (RETRY_SECONDS if self.failed else FRESH_SECONDS)
        if self._asking is None and (forced or is_due):
            self._asking = asyncio.create_task(self._ask(self._timeout))
        if self._asking is not None and wait and (forced or self.models is None):
            await asyncio.shield(self._asking)

    async def ask(self, timeout: float) -> None:
        """Asks now, waiting at most `timeout` seconds; `error` tells how it went."""
        if self._asking is None:
            self._asking = asyncio.create_task(self._ask(timeout))
        await asyncio.shield(self._asking)

    async def measure(self, name: str, measure: Callable[[], Awaitable[int]]) -> int:
        """Returns the length that `measure` finds for a model's vectors, measured once. Raises what it raises."""
        if name not in self.measured:
            if name not in self._measuring:
                self._measuring[name] = asyncio.create_task(self._measure(name, measure))
            await asyncio.shield(self._measuring[name])
        return self.measured[name]

    async def _measure(self, name: str, measure: Callable[[], Awaitable[int]]) -> int:
        try:
            self.measured[name] = await measure()
        finally:
            del self._measuring[name]
        return self.measured[name]

    async def _ask(self, timeout: float) -> None:
        try:
            models = await list_models(await self._providers.get(self._config), self._config, timeout)
            self.models, self.error = {model.name: model for model in models}, None
            self.synced_at = datetime.now(UTC)
        except LlmError as error:
            self.error = error
        finally:
            self._asked_at, self._asking = time.monotonic(), None
        if self._keep is not None:
            await self._keep(self)

    @property
    def error_text(self) -> str:
        """Returns `error` as it is stored and shown; empty without one."""
        return "" if self.error is None else self.error.message[:_LONGEST_ERROR].replace("\0", "")
