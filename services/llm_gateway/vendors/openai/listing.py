"""Lists of models at GET /models, of each endpoint in its own words. Pure."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from services.llm_gateway.core.models import ListedModel, ModelKind, Price, ValueSource
from services.llm_gateway.core.tables import openai
from services.llm_gateway.vendors.openai.profiles import VendorProfile

# vLLM and SGLang; OpenRouter, Together, Fireworks, Moonshot and Baseten; Groq; Mistral and Cerebras.
_WINDOWS = ("max_model_len", "context_length", "context_window", "max_context_length")
_LIMITS = ("max_completion_tokens", "max_output_tokens", "max_output_length")
# Together's, LM Studio's and others' words for kinds.
_KINDS = {
    "chat": ModelKind.CHAT,
    "llm": ModelKind.CHAT,
    "vlm": ModelKind.CHAT,
    "embedding": ModelKind.EMBEDDING,
    "embeddings": ModelKind.EMBEDDING,
    "EMBEDDING_MODEL": ModelKind.EMBEDDING,
}
_EMBEDDING = re.compile(r"(^|[-_/.])embed(der|ding|dings)?([-_.:/]|\d|$)", re.IGNORECASE)
_OTHER = re.compile(
    r"whisper|(^|[-_/])(tts|asr|ocr|rerank(er)?|moderation|guard|image|video|orpheus|cogview)([-_.\d]|$)"
)
# Our capability: the words for it in lists of features and parameters, and in objects of flags.
_WORDS: Mapping[str, tuple[str, ...]] = {
    "tools": ("tools", "function_calling", "supports_tools"),
    "parallel_tool_calls": ("parallel_tool_calls",),
    "structured_output": ("structured_outputs", "structured_output", "supports_structured_output"),
    "reasoning": ("reasoning", "supports_reasoning"),
    "logprobs": ("logprobs",),
    "temperature": ("temperature",),
    "vision": ("vision", "supports_image_input", "supports_image_in"),
}
# Lists that are complete, so that what is not there is not offered.
_COMPLETE_PARAMETERS = ("tools", "structured_output", "reasoning", "logprobs", "temperature")
_COMPLETE_FEATURES = ("tools", "structured_output", "reasoning")
_PER_TOKEN = {"input": "prompt", "output": "completion", "cached_input": "input_cache_read"}
_PER_MILLION = {"input": "input", "output": "output", "cached_input": "cached_input"}


def models_in(reply: Any, vendor: VendorProfile, provider_type: str, tier: str = "") -> list[ListedModel]:
    """Returns the models of a reply: an object with `data`, or a plain list (Together). `tier`: the account's, where
    windows depend on it.
    """
    items = reply.get("data") if isinstance(reply, Mapping) else reply
    window = vendor.tier_windows.get(tier)
    return [
        _model(item, provider_type, vendor, window)
        for item in (items if isinstance(items, list) else ())
        if isinstance(item, Mapping) and item.get("id")
    ]


def _model(item: Mapping[str, Any], provider_type: str, vendor: VendorProfile, window: int | None) -> ListedModel:
    places = [item, *(item[name] for name in ("top_provider", "limits") if isinstance(item.get(name), Mapping))]
    thinks = {"reasoning": True} if vendor.thinkers is not None and vendor.thinkers.search(str(item["id"])) else {}
    return ListedModel(
        name=str(item["id"]),
        context_window=window or _smallest(places, _WINDOWS) or _hosted_window(item),
        max_output_tokens=_smallest(places, _LIMITS),
        display_name=str(item.get("name") or item.get("display_name") or ""),
        kind=_kind(item, provider_type),
        capabilities={**thinks, **_capabilities(item)},
        dimensions=_smallest([item], ("dimensions", "embedding_dimension", "embedding_dimensions")),
        price=_price(item),
    )


def _smallest(places: Iterable[Mapping[str, Any]], names: Iterable[str]) -> int | None:
    """OpenRouter says the window of the model and of the provider that is asked first; the smaller is safe."""
    values = (place.get(name) for place in places for name in names)
    return min(
        (value for value in values if isinstance(value, int) and not isinstance(value, bool) and value > 0),
        default=None,
    )


def _hosts(item: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Those behind Hugging Face's router that are up."""
    hosts = item.get("providers")
    named = [host for host in hosts if isinstance(host, Mapping)] if isinstance(hosts, list) else []
    return [host for host in named if host.get("status", "live") == "live"]


def _hosted_window(item: Mapping[str, Any]) -> int | None:
    """The router chooses among hosts; what fits the smallest fits all."""
    return _smallest(_hosts(item), _WINDOWS)


def _kind(item: Mapping[str, Any], provider_type: str) -> ModelKind:
    name, abilities = str(item["id"]), item.get("capabilities")
    if item.get("active") is False:
        return ModelKind.OTHER
    if (word := item.get("type") or item.get("kind")) in _KINDS:
        return _KINDS[str(word)]
    if _EMBEDDING.search(name):
        return ModelKind.EMBEDDING
    if outputs := _modalities(item, "output_modalities"):
        return ModelKind.CHAT if "text" in outputs else _KINDS.get(outputs[0], ModelKind.OTHER)
    if provider_type == "together" and word:
        return ModelKind.OTHER
    if isinstance(abilities, Mapping) and "completion_chat" in abilities:
        return ModelKind.CHAT if abilities["completion_chat"] else ModelKind.OTHER
    if "supports_chat" in item:
        return ModelKind.CHAT if item["supports_chat"] else ModelKind.OTHER
    if provider_type == "openai":
        return ModelKind.OTHER if openai.NOT_CHAT.search(name) else ModelKind.UNKNOWN
    return ModelKind.OTHER if _OTHER.search(name.lower()) else ModelKind.UNKNOWN


def _modalities(item: Mapping[str, Any], name: str) -> list[str]:
    architecture = item.get("architecture")
    places = (item, architecture if isinstance(architecture, Mapping) else {})
    return next((list(map(str, place[name])) for place in places if isinstance(place.get(name), list)), [])


def _capabilities(item: Mapping[str, Any]) -> dict[str, bool]:
    capabilities: dict[str, bool] = {}
    for field, complete in (("supported_parameters", _COMPLETE_PARAMETERS), ("supported_features", _COMPLETE_FEATURES)):
        if isinstance(words := item.get(field), list):
            have = {name for name in _WORDS if set(_WORDS[name]) & set(map(str, words))}
            capabilities |= {name: name in have for name in {*have, *complete}}
    if inputs := _modalities(item, "input_modalities"):
        capabilities["vision"] = "image" in inputs
    flags = [item, item.get("capabilities")]
    for place in (place for place in flags if isinstance(place, Mapping)):
        capabilities |= {
            name: place[word] for name, words in _WORDS.items() for word in words if isinstance(place.get(word), bool)
        }
    if hosts := _hosts(item):
        for name in ("tools", "structured_output"):
            capabilities[name] = any(host.get(word) is True for host in hosts for word in _WORDS[name])
    return capabilities


def _price(item: Mapping[str, Any]) -> Price | None:
    """Per token as text (OpenRouter, Baseten), or per million as a number (Together). Negative: it depends."""
    pricing = item.get("pricing")
    if not isinstance(pricing, Mapping):
        return None
    names, factor = (_PER_TOKEN, 1e9) if "prompt" in pricing else (_PER_MILLION, 1e3)
    figures = {ours: _number(pricing.get(theirs)) for ours, theirs in names.items()}
    if figures["input"] is None or figures["output"] is None:
        return None
    nanos = {ours: None if value is None else round(value * factor) for ours, value in figures.items()}
    write = _number(pricing.get("input_cache_write"))
    return Price(
        nanos["input"] or 0,
        nanos["output"] or 0,
        nanos["cached_input"],
        None if write is None else round(write * factor),
        ValueSource.ENDPOINT,
    )


def _number(value: Any) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if number >= 0 else None
