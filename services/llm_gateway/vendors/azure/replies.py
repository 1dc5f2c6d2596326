"""Azure's additions to OpenAI's wire: lists of deployments, findings of content filters, errors of its edge. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from services.llm_gateway.core.models import ListedModel, ModelKind
from services.llm_gateway.core.refusals import Refusal
from services.llm_gateway.vendors.responses import replies as responses

# Azure's own spelling of a vendor's name.
_RESPELT = {"gpt-35": "gpt-3.5"}


def read_refusal(status: int, body: Any) -> Refusal:
    """Returns the refusal in an error body; the edge before the models has a shape of its own, and a content filter
    tells its findings in another.
    """
    refusal = responses.read_refusal(status, body)
    error = body.get("error", body) if isinstance(body, dict) else None
    if not isinstance(error, dict):
        return refusal
    categories = ", ".join(_findings(error))
    return replace(refusal, message=f"{refusal.message} (found: {categories})") if categories else refusal


def _findings(error: Mapping[str, Any]) -> Iterator[str]:
    """Yields the categories that a content filter refused, with their severity where they have one."""
    inner = error.get("innererror") or {}
    results = [inner.get("content_filter_result")]
    results += [one.get("content_filter_results") for one in error.get("content_filters") or ()]
    for result in results:
        for name, verdict in (result or {}).items():
            if isinstance(verdict, dict) and verdict.get("filtered"):
                severity = verdict.get("severity")
                yield f"{name} {severity}" if severity else name


def deployments(items: Iterable[Mapping[str, Any]]) -> list[ListedModel]:
    """Returns the deployments that can be called, each with the vendor's name of its model."""
    ready = [item for item in items if item.get("id") and item.get("status", "succeeded") == "succeeded"]
    return [ListedModel(item["id"], base_model=vendors_name(str(item.get("model") or ""))) for item in ready]


def models(items: Iterable[Mapping[str, Any]]) -> list[ListedModel]:
    """Returns the models of the v1 API's list, by their purpose. Those that cannot be called are left out."""
    return [
        ListedModel(item["id"], kind=_kind(item), base_model=vendors_name(item["id"]))
        for item in items
        if item.get("id") and (item.get("capabilities") or {}).get("inference", True)
    ]


def vendors_name(model: str) -> str:
    """Returns a model's name as OpenAI spells it."""
    for name, vendors in _RESPELT.items():
        if model.startswith(name):
            return vendors + model.removeprefix(name)
    return model


def _kind(item: Mapping[str, Any]) -> ModelKind:
    can = item.get("capabilities") or {}
    if can.get("embeddings"):
        return ModelKind.EMBEDDING
    if can.get("chat_completion") or not can:
        return ModelKind.CHAT if can else ModelKind.UNKNOWN
    return ModelKind.OTHER
