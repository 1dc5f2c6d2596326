"""Models of Google's lists. Pure."""

from collections.abc import Mapping
from typing import Any

from services.llm_gateway.core.models import ListedModel, ModelKind
from services.llm_gateway.core.tables import google


def model_from_list(item: Mapping[str, Any]) -> ListedModel:
    """Returns a model of Google AI's list."""
    name = str(item["name"]).removeprefix("models/")
    thinks = item.get("thinking")
    return ListedModel(
        name,
        context_window=item.get("inputTokenLimit"),
        max_output_tokens=item.get("outputTokenLimit"),
        display_name=item.get("displayName") or "",
        kind=_kind(name, item.get("supportedGenerationMethods") or ()),
        capabilities={"reasoning": thinks} if isinstance(thinks, bool) else {},
    )


def _kind(name: str, methods: Any) -> ModelKind:
    if "generateContent" in methods:
        return ModelKind.OTHER if google.NOT_CHAT.search(name) else ModelKind.CHAT
    return ModelKind.EMBEDDING if {"embedContent", "batchEmbedContents"} & set(methods) else ModelKind.OTHER


def model_from_publisher(item: Mapping[str, Any]) -> ListedModel:
    """Returns a model of Vertex's list of publisher's models, which has names alone."""
    return model_from_name(str(item["name"]).rpartition("/")[2])


def model_from_name(name: str) -> ListedModel:
    """Returns a model of which only the name is known."""
    if "embedding" in name:
        return ListedModel(name, kind=ModelKind.EMBEDDING)
    chats = name.startswith("gemini-") and not google.NOT_CHAT.search(name)
    return ListedModel(name, kind=ModelKind.CHAT if chats else ModelKind.OTHER)
