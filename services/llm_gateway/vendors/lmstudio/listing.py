"""LM Studio's own lists of its models: /api/v1/models since 0.4.0, /api/v0/models before. Pure.

The window is that of the loaded instance, the smallest where there are several; a model that is not loaded is listed
with what it could take at most, though LM Studio may load it with less: then load it with more, or say the window.
`trained_for_tool_use` false is not said to be "no tools": LM Studio then prompts for calls.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from services.llm_gateway.core.models import ListedModel, ModelKind

_KINDS = {
    "llm": ModelKind.CHAT,
    "vlm": ModelKind.CHAT,
    "embeddings": ModelKind.EMBEDDING,
    "embedding": ModelKind.EMBEDDING,
}


def of_v1(reply: Any) -> Sequence[ListedModel] | None:
    """Returns the models. None: the answer is no such list; unknown routes are answered with 200 and an error."""
    return _all(reply, "models", "key", _of_v1)


def of_v0(reply: Any) -> Sequence[ListedModel] | None:
    """As of_v1."""
    return _all(reply, "data", "id", _of_v0)


def _all(reply: Any, field: str, name: str, read: Any) -> Sequence[ListedModel] | None:
    items = reply.get(field) if isinstance(reply, Mapping) else None
    if not isinstance(items, list):
        return None
    return [read(item) for item in items if isinstance(item, Mapping) and item.get(name)]


def _of_v1(item: Mapping[str, Any]) -> ListedModel:
    can = item.get("capabilities") or {}
    loaded = [(instance.get("config") or {}).get("context_length") for instance in item.get("loaded_instances") or ()]
    kind = _KINDS.get(str(item.get("type")), ModelKind.OTHER)
    capabilities: dict[str, bool] = {}
    if kind is ModelKind.CHAT:
        capabilities = {"vision": bool(can["vision"])} if "vision" in can else {}
        capabilities |= {"tools": True} if can.get("trained_for_tool_use") else {}
        capabilities |= {"reasoning": True} if can.get("reasoning") else {}
    window = _smallest(loaded) or _smallest([item.get("max_context_length")])
    return ListedModel(
        item["key"], window, display_name=item.get("display_name") or "", kind=kind, capabilities=capabilities
    )


def _of_v0(item: Mapping[str, Any]) -> ListedModel:
    kind = _KINDS.get(str(item.get("type")), ModelKind.OTHER)
    capabilities: dict[str, bool] = {}
    if kind is ModelKind.CHAT:
        capabilities = {"vision": item["type"] == "vlm"}
        capabilities |= {"tools": True} if "tool_use" in (item.get("capabilities") or ()) else {}
    window = _smallest([item.get("loaded_context_length")]) or _smallest([item.get("max_context_length")])
    return ListedModel(item["id"], window, kind=kind, capabilities=capabilities)


def _smallest(windows: Iterable[Any]) -> int | None:
    return min((window for window in windows if isinstance(window, int) and window > 0), default=None)
