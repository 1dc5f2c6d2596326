"""A model's figures, each from the first that says it: override, endpoint, table; and which of them that was. Pure."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

from services.llm_gateway.core.known_models import UNLISTED, known, known_embedding
from services.llm_gateway.core.models import (
    Capabilities,
    ChatModel,
    EmbeddingModel,
    ListedModel,
    ModelKind,
    Price,
    ValueSource,
)
from services.llm_gateway.core.overrides import Override
from services.llm_gateway.core.provider_config import ProviderConfig
from services.llm_gateway.core.tables.rows import KnownModel

T = TypeVar("T")

# Texts of one call where nobody says how many it may have: what every vendor takes.
_TEXTS_AT_ONCE = 64


def chat_model(config: ProviderConfig, listed: ListedModel, override: Override) -> ChatModel:
    """Returns the model with its figures; the window may stay unknown."""
    base_model = override.base_model or listed.base_model
    row = known(config.type, listed.name, base_model)
    window, window_source = _first(override.context_window, listed.context_window, row.context_window if row else None)
    most, most_source = _first(
        override.max_output_tokens, listed.max_output_tokens, row.max_output_tokens if row else None
    )
    capabilities, capabilities_source = _capabilities(override.capabilities, listed.capabilities, row)
    if most is not None and window is not None and most > window:
        most = window
    return ChatModel(
        provider_name=config.name,
        provider_type=config.type,
        name=listed.name,
        endpoint=config.base_url,
        context_window=window,
        context_window_source=window_source,
        max_output_tokens=most,
        capabilities=capabilities,
        display_name=listed.display_name or listed.name,
        max_output_tokens_source=most_source,
        capabilities_source=capabilities_source,
        price=override.price or _from_endpoint(listed) or (row.price if row else None),
        base_model=base_model,
        is_tenants=config.organization_id is not None,
    )


def embedding_model(
    config: ProviderConfig, listed: ListedModel, override: Override, measured: int | None = None
) -> EmbeddingModel:
    """Returns the model with its figures. `measured`: the length of a vector it gave; without any length, dimensions is
    0.
    """
    row = known_embedding(config.type, listed.name, override.base_model or listed.base_model)
    dimensions, source = _first(override.dimensions, listed.dimensions, row.dimensions if row else None)
    if dimensions is None and measured is not None:
        dimensions, source = measured, ValueSource.ENDPOINT
    return EmbeddingModel(
        provider_name=config.name,
        provider_type=config.type,
        name=listed.name,
        endpoint=config.base_url,
        dimensions=dimensions or 0,
        batch_size=override.batch_size or (row.batch_size if row else _TEXTS_AT_ONCE),
        display_name=listed.display_name or listed.name,
        dimensions_source=source,
        price=override.price or _from_endpoint(listed) or (row.price if row else None),
        is_tenants=config.organization_id is not None,
    )


def is_known_chat(config: ProviderConfig, name: str, override: Override) -> bool:
    """Returns whether override or table know the model, whatever its endpoint says."""
    return override.context_window is not None or known(config.type, name, override.base_model) is not None


def embeds(config: ProviderConfig, listed: ListedModel, override: Override) -> bool:
    """Returns whether a model is known to be for embeddings."""
    if listed.kind in (ModelKind.CHAT, ModelKind.OTHER):
        return override.dimensions is not None
    if override.dimensions is not None or listed.dimensions is not None or listed.kind is ModelKind.EMBEDDING:
        return True
    return known_embedding(config.type, listed.name, override.base_model or listed.base_model) is not None


def chats(config: ProviderConfig, listed: ListedModel, override: Override) -> bool:
    """Returns whether a model may be for chats: nobody says that it is for something else."""
    if override.context_window is not None:
        return True
    return listed.kind is ModelKind.CHAT or (listed.kind is ModelKind.UNKNOWN and not embeds(config, listed, override))


def _first(override: T | None, listed: T | None, row: T | None) -> tuple[T | None, ValueSource | None]:
    for value, source in (
        (override, ValueSource.OVERRIDE),
        (listed, ValueSource.ENDPOINT),
        (row, ValueSource.TABLE),
    ):
        if value is not None:
            return value, source
    return None, None


def _capabilities(
    override: Mapping[str, bool], listed: Mapping[str, bool], row: KnownModel | None
) -> tuple[Capabilities, ValueSource | None]:
    """Returns each from the first that says it, and the first source that says any."""
    can = row.capabilities if row else UNLISTED
    if listed or override:
        can = replace(can, **{**listed, **override})
    for any_said, source in (
        (override, ValueSource.OVERRIDE),
        (listed, ValueSource.ENDPOINT),
        (row, ValueSource.TABLE),
    ):
        if any_said:
            return can, source
    return can, None


def _from_endpoint(listed: ListedModel) -> Price | None:
    return None if listed.price is None else replace(listed.price, source=ValueSource.ENDPOINT)
