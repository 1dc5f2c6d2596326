"""Overrides: figures of models that the operator, or a tenant in its provider's options, sets. They go before endpoint
and table. Pure.

An object of a model: {context_window, max_output_tokens, tools, parallel_tool_calls, streaming, vision, reasoning,
structured_output, logprobs, temperature, dimensions, batch_size, base_model, price: {input, output, cached_input,
cache_write}}; tokens and texts are whole numbers, capabilities true or false, prices US dollars for a million tokens.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeVar

from services.llm_gateway.core.models import Capabilities, Price, ValueSource
from services.llm_gateway.core.tables.rows import usd

T = TypeVar("T")

# Where the operator says windows, and all else of models.
WINDOWS_SETTING, MODELS_SETTING = "LOCI_MODEL_WINDOWS", "LOCI_MODELS"
CAPABILITIES = tuple(one.name for one in fields(Capabilities))
LARGEST_WINDOW = 100_000_000
# What pgvector and the memory service keep.
MOST_DIMENSIONS = 16_000
_MOST_TEXTS = 2_048
_NUMBERS = {
    "context_window": LARGEST_WINDOW,
    "max_output_tokens": LARGEST_WINDOW,
    "dimensions": MOST_DIMENSIONS,
    "batch_size": _MOST_TEXTS,
}
_PRICES = ("input", "output", "cached_input", "cache_write")
# A dollar for each token.
_HIGHEST_PRICE = 1_000_000.0
# The name the reference gives to OpenAI behind another base URL: taken for `openai`, never shown.
ALIASES = {"openai-proxy": "openai"}


@dataclass(frozen=True, slots=True)
class Override:
    """The override of one model; None (and no key among `capabilities`) where nothing is set."""

    context_window: int | None = None
    max_output_tokens: int | None = None
    dimensions: int | None = None
    batch_size: int | None = None
    capabilities: Mapping[str, bool] = field(default_factory=dict)
    base_model: str = ""
    price: Price | None = None


_NOTHING = Override()


class InvalidOverride(Exception):
    """The value is not an override; the text says why, without a full stop."""


@dataclass(frozen=True, slots=True)
class ProviderOverrides:
    """The overrides of one provider's models: by name, and the price of all others."""

    models: Mapping[str, Override] = field(default_factory=dict)
    price: Price | None = None

    def of(self, name: str) -> Override:
        """Returns the override of a model."""
        override = self.models.get(name, _NOTHING)
        return replace(override, price=self.price) if override.price is None and self.price is not None else override


@dataclass(frozen=True, slots=True)
class OperatorOverrides:
    """By handle; prices also by `provider/*`. A price here goes before the one among `models`."""

    models: Mapping[str, Override] = field(default_factory=dict)
    prices: Mapping[str, Price] = field(default_factory=dict)

    def of_provider(self, name: str) -> ProviderOverrides:
        """Returns those whose handles begin with this provider's name, or its alias."""
        models = {**_of_provider(self.models, name)}
        prices = {**_of_provider(self.prices, name)}
        for_all = prices.pop("*", None)
        for model, price in prices.items():
            models[model] = replace(models.get(model, _NOTHING), price=price)
        if for_all is not None:
            models = {
                model: override if model in prices else replace(override, price=for_all)
                for model, override in models.items()
            }
        return ProviderOverrides(models, for_all)


def _of_provider(by_handle: Mapping[str, T], provider: str) -> Mapping[str, T]:
    values = {}
    for handle, value in by_handle.items():
        name, _, model = handle.partition("/")
        if name == provider or ALIASES.get(name) == provider:
            values[model] = value
    return values


def handles(value: Any, read: Callable[[Any], T]) -> dict[str, T]:
    """Returns an object by handle, each value read by `read`. Raises InvalidOverride, whose text names the handle."""
    if not isinstance(value, dict):
        raise InvalidOverride("it is not a JSON object")
    return {_handle(handle): _read_named(handle, read, one) for handle, one in value.items()}


def names(value: Any) -> ProviderOverrides:
    """Reads the `models` option of a provider, by the models' names. Raises InvalidOverride."""
    if not isinstance(value, dict):
        raise InvalidOverride("models is not a JSON object of models by their names")
    return ProviderOverrides({name: _read_named(name, model, one) for name, one in value.items()})


def window(value: Any) -> Override:
    """Reads the tokens of a context window. Raises InvalidOverride."""
    return Override(context_window=_number("context_window", value))


def model(value: Any) -> Override:
    """Reads one model's object, see the module. Raises InvalidOverride."""
    if not isinstance(value, dict):
        raise InvalidOverride("it is not a JSON object")
    if unknown := sorted(value.keys() - {*_NUMBERS, *CAPABILITIES, "base_model", "price"}):
        known = ", ".join((*_NUMBERS, *CAPABILITIES, "base_model", "price"))
        raise InvalidOverride(f"{', '.join(unknown)} is none of {known}")
    numbers = {name: _number(name, value[name]) for name in _NUMBERS if value.get(name) is not None}
    capabilities = {name: value[name] for name in CAPABILITIES if value.get(name) is not None}
    if wrong := [name for name, can in capabilities.items() if not isinstance(can, bool)]:
        raise InvalidOverride(f"{wrong[0]} is neither true nor false")
    base_model = value.get("base_model") or ""
    if not isinstance(base_model, str):
        raise InvalidOverride("base_model is not a text")
    price_json = value.get("price")
    return Override(
        **numbers,
        capabilities=capabilities,
        base_model=base_model,
        price=None if price_json is None else price(price_json),
    )


def price(value: Any) -> Price:
    """Reads a price's object, see the module. Raises InvalidOverride."""
    if not isinstance(value, dict) or value.get("input") is None or value.keys() - {*_PRICES}:
        raise InvalidOverride(f"a price is a JSON object of input and perhaps {', '.join(_PRICES[1:])}")
    if wrong := [name for name, figure in value.items() if figure is not None and not _is_price(figure)]:
        raise InvalidOverride(f"the price of {wrong[0]} is not a number of US dollars for a million tokens")
    result = usd(
        value["input"], value.get("output") or 0.0, cached=value.get("cached_input"), write=value.get("cache_write")
    )
    return replace(result, source=ValueSource.OVERRIDE)


def _is_price(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value <= _HIGHEST_PRICE


def _number(name: str, value: Any) -> int:
    if type(value) is not int or not 0 < value <= _NUMBERS[name]:
        raise InvalidOverride(f"{name} is not a whole number from 1 to {_NUMBERS[name]}")
    return int(value)


def _handle(text: str) -> str:
    provider, _, name = text.partition("/")
    if not provider or not name:
        raise InvalidOverride(f"{text!r} is not a handle, provider/model")
    return text


def _read_named(name: str, read: Callable[[Any], T], value: Any) -> T:
    try:
        return read(value)
    except InvalidOverride as error:
        raise InvalidOverride(f"{name}: {error}") from None
