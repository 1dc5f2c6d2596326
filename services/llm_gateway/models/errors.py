"""Errors about models that are not there or not known well enough, each with what to do about it."""

from collections.abc import Iterable

from services.llm_gateway.core.errors import EmbeddingNotFound, ModelNotFound, ModelWindowUnknown
from services.llm_gateway.core.models import ChatModel
from services.llm_gateway.core.overrides import MODELS_SETTING, WINDOWS_SETTING
from services.llm_gateway.providers.entries import ProviderEntry

_NAMED = 30


def no_provider(handle: str, names: Iterable[str]) -> ModelNotFound:
    """Returns the error for a handle of no provider."""
    return ModelNotFound(
        f"There is no model {handle!r}: configured providers are {_some(names)}. A handle is provider/model, for "
        "example loci/demo; OPENAI_API_KEY or ANTHROPIC_API_KEY in the environment of the server adds that provider, "
        "POST /v1/providers one of your own.",
        handle=handle,
    )


def model_not_found(one: ProviderEntry, name: str, handles: Iterable[str]) -> ModelNotFound:
    """Returns the error for a model that its endpoint does not list."""
    handle = f"{one.config.name}/{name}"
    return ModelNotFound(
        f"There is no model {handle!r}; there are: {_some(handles)}.", provider=one.config.name, handle=handle
    )


def not_for_chats(model: ChatModel) -> ModelNotFound:
    """Returns the error for a model that is for something else."""
    return ModelNotFound(
        f"{model.handle} is not a chat model; choose another one.", provider=model.provider_name, handle=model.handle
    )


def embedding_not_found(one: ProviderEntry, name: str, handles: Iterable[str]) -> EmbeddingNotFound:
    """Returns the error for a name of no embedding model."""
    handle = f"{one.config.name}/{name}"
    return EmbeddingNotFound(
        f"There is no embedding model {handle!r}; there are: {_some(handles)}. If it is served there, say how long its "
        f"vectors are: {_how_to_set(one, name, 'dimensions', 1024)}",
        provider=one.config.name,
        handle=handle,
    )


def not_answering(one: ProviderEntry, name: str) -> ModelNotFound:
    """Returns the error for a model of an endpoint that does not list its models."""
    handle, config = f"{one.config.name}/{name}", one.config
    where = f" ({config.base_url})" if config.base_url else ""
    # What is wrong there is more often the key or the address than the model.
    why = f" {one.listing.error.message}" if one.listing.error is not None else ""
    return ModelNotFound(
        f"{config.name} does not list its models now{where}, and {handle!r} is not in the table of known models.{why} "
        f"If it is served there, say so: {_how_to_set(one, name, 'context_window', 32768)}",
        provider=config.name,
        handle=handle,
    )


def window_unknown(one: ProviderEntry, model: ChatModel) -> ModelWindowUnknown:
    """Returns the error for a model whose window is unknown."""
    return ModelWindowUnknown(
        f"The context window of {model.handle} is unknown: neither its endpoint nor the table says it. "
        f"Set it in tokens: {_how_to_set(one, model.name, 'context_window', 32768)}",
        provider=model.provider_name,
        handle=model.handle,
    )


def _how_to_set(one: ProviderEntry, name: str, what: str, figure: int) -> str:
    if one.stored is not None:
        body = f'{{"options": {{"models": {{"{name}": {{"{what}": {figure}}}}}}}}}'
        return f"PATCH /v1/providers/provider-{one.stored.id} with {body} (options replace those it has)."
    handle = f"{one.config.name}/{name}"
    of_models = f'{MODELS_SETTING}=\'{{"{handle}": {{"{what}": {figure}}}}}\''
    if what != "context_window":
        return f"{of_models} in the environment of the server."
    shortest = f"{WINDOWS_SETTING}='{{\"{handle}\": {figure}}}'"
    by_name = (
        f'{MODELS_SETTING}=\'{{"{handle}": {{"base_model": "gpt-4o"}}}}\' where it is a known model by another name'
    )
    return f"{shortest} or {of_models} in the environment of the server, or {by_name}."


def _some(names: Iterable[str]) -> str:
    ordered = sorted(names)
    text = ", ".join(ordered[:_NAMED]) or "none"
    return f"{text} and {len(ordered) - _NAMED} more" if len(ordered) > _NAMED else text
