"""Listed models as JSON, as they are stored. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any

from services.llm_gateway.core.models import ListedModel, ModelKind, Price, ValueSource

_PLAIN = ("context_window", "max_output_tokens", "display_name", "dimensions", "base_model")
_PRICES = ("input", "output", "cached_input", "cache_write")


def to_json(models: Iterable[ListedModel]) -> list[dict[str, Any]]:
    """Returns the models as JSON; unset fields are left out."""
    return [_to_json(model) for model in models]


def from_json(stored: Iterable[Mapping[str, Any]]) -> list[ListedModel]:
    """Returns the models of what `to_json` returned; unknown fields are passed over."""
    return [_from_json(item) for item in stored]


def _to_json(model: ListedModel) -> dict[str, Any]:
    fields = {name: value for name in _PLAIN if (value := getattr(model, name))}
    if model.kind is not ModelKind.UNKNOWN:
        fields["kind"] = model.kind.name.lower()
    if model.capabilities:
        fields["capabilities"] = dict(model.capabilities)
    if model.price is not None:
        fields["price"] = {name: value for name in _PRICES if (value := getattr(model.price, name)) is not None}
    return {"name": model.name, **fields}


def _from_json(item: Mapping[str, Any]) -> ListedModel:
    price = item.get("price")
    return ListedModel(
        item["name"],
        kind=ModelKind[item.get("kind", "unknown").upper()],
        capabilities=item.get("capabilities") or {},
        price=None if price is None else Price(**price, source=ValueSource.ENDPOINT),
        **{name: item[name] for name in _PLAIN if name in item},
    )
