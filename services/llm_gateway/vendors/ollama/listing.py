"""Models by the answers of /api/tags and /api/show. Pure.

Versions before 0.6.4 show no `capabilities`; then the prompt template and the weights' metadata say what they can, and
what they do not say stays unsaid.
"""

import re
from collections.abc import Mapping
from typing import Any

from services.llm_gateway.core.models import ListedModel, ModelKind

# A window that the model's Modelfile sets.
_NUM_CTX = re.compile(r"^num_ctx\s+(\d+)", re.MULTILINE)
_CLIP = frozenset({"clip", "mllama"})


def listed_model(name: str, tag: Mapping[str, Any], info_reply: Mapping[str, Any]) -> ListedModel:
    """Returns the model `name` by its entry in /api/tags and the answer of /api/show ({} where it gave none)."""
    info = info_reply.get("model_info") or {}
    kind, capabilities = (
        _of_capabilities(info_reply) if "capabilities" in info_reply else _of_template(tag, info_reply, info)
    )
    embedding = kind is ModelKind.EMBEDDING
    return ListedModel(
        name,
        context_window=_window(info_reply, info),
        kind=kind,
        capabilities={} if embedding else capabilities,
        dimensions=_number(info, ".embedding_length") if embedding else None,
    )


def _window(info_reply: Mapping[str, Any], info: Mapping[str, Any]) -> int | None:
    trained = _number(info, ".context_length")
    match = _NUM_CTX.search(str(info_reply.get("parameters") or ""))
    chosen = int(match[1]) if match else None
    if trained and chosen:
        return min(trained, chosen)
    return trained or chosen


def _number(info: Mapping[str, Any], end: str) -> int | None:
    """The figure of the model itself, not of a part as in "mllama.vision.embedding_length"."""
    named = {name: value for name, value in info.items() if name.endswith(end) and name.count(".") == 1}
    return next((value for value in named.values() if isinstance(value, int) and value > 0), None)


def _of_capabilities(info_reply: Mapping[str, Any]) -> tuple[ModelKind, Mapping[str, bool]]:
    can = frozenset(info_reply["capabilities"] or ())
    if "completion" not in can:
        return (ModelKind.EMBEDDING if "embedding" in can else ModelKind.OTHER), {}
    thinking = (info_reply.get("thinking") or {}).get("values")
    return ModelKind.CHAT, {
        "tools": "tools" in can,
        "vision": "vision" in can,
        "reasoning": "thinking" in can and thinking != [False],
        "structured_output": True,
    }


def _of_template(
    tag: Mapping[str, Any], info_reply: Mapping[str, Any], info: Mapping[str, Any]
) -> tuple[ModelKind, Mapping[str, bool]]:
    details = info_reply.get("details") or tag.get("details") or {}
    families = {str(family) for family in [details.get("family"), *(details.get("families") or ())]}
    if any("bert" in family for family in families) or any(name.endswith(".pooling_type") for name in info):
        return ModelKind.EMBEDDING, {}
    known: dict[str, bool] = {}
    template = info_reply.get("template")
    if template:
        # A template that names no tools shows them to no model.
        known["tools"] = ".Tools" in template
    if info_reply.get("projector_info") or families & _CLIP or any(".vision." in name for name in info):
        known["vision"] = True
    return (ModelKind.CHAT if template else ModelKind.UNKNOWN), known
