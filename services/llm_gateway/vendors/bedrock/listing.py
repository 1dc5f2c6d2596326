"""Bedrock's lists of foundation models and inference profiles, as models of ours. Pure.

Most models can be called only through a profile of their region, whose name says little of an application's own:
ARNs of the foundation models behind it tell which it is.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from services.llm_gateway.core.models import ListedModel, ModelKind
from services.llm_gateway.core.tables.bedrock import base_name


def listed_models(
    foundations: Iterable[Mapping[str, Any]], profiles: Iterable[Mapping[str, Any]]
) -> Iterator[ListedModel]:
    """Yields every model that can be called, by the id that a call names."""
    known = {str(one.get("modelId")): one for one in foundations if one.get("modelId")}
    for id, one in known.items():
        if "ON_DEMAND" in (one.get("inferenceTypesSupported") or ("ON_DEMAND",)):
            yield _model(id, id, one, "")
    for profile in profiles:
        profile_id = profile.get("inferenceProfileId")
        if not profile_id or profile.get("status", "ACTIVE") != "ACTIVE":
            continue
        arns = [str(model.get("modelArn") or "") for model in profile.get("models") or ()]
        foundation = arns[0].rpartition("/")[2] if arns else str(profile_id)
        yield _model(str(profile_id), foundation, known.get(foundation, {}), profile.get("inferenceProfileName") or "")


def _model(id: str, foundation: str, summary: Mapping[str, Any], name: str) -> ListedModel:
    return ListedModel(
        id,
        display_name=name or summary.get("modelName") or id,
        kind=_kind(summary),
        capabilities=_capabilities(summary),
        base_model=base_name(foundation),
    )


def _kind(summary: Mapping[str, Any]) -> ModelKind:
    modalities = summary.get("outputModalities")
    if not modalities:
        return ModelKind.UNKNOWN
    if "EMBEDDING" in modalities:
        return ModelKind.EMBEDDING
    return ModelKind.CHAT if "TEXT" in modalities and "SPEECH" not in modalities else ModelKind.OTHER


def _capabilities(summary: Mapping[str, Any]) -> dict[str, bool]:
    capabilities = {}
    if summary.get("inputModalities"):
        capabilities["vision"] = "IMAGE" in summary["inputModalities"]
    if summary.get("responseStreamingSupported") is not None:
        capabilities["streaming"] = bool(summary["responseStreamingSupported"])
    return capabilities
