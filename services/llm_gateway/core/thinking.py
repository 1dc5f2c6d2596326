"""How much a model thinks where its settings do not say. Pure.

These are the defaults of the Letta V1 API, whose clients read them in an agent's `model_settings`.
"""

import re
from collections.abc import Mapping
from typing import Any

from services.llm_gateway.core.models import ChatModel

# The least that Anthropic takes.
_BUDGET = 1_024
_DECLARED_EFFORT = "high"
# By the beginning of a name; the first that fits counts.
_EFFORTS = (
    (re.compile(r"gpt-5\.1(?!\d)"), "none"),
    (re.compile(r"gpt-5(?!\.)"), "minimal"),
    (re.compile(r"gpt-5|o\d"), "medium"),
)


def usual_budget(model: ChatModel) -> int:
    """Returns the tokens that a model of Anthropic's may think for; 0 for one that cannot, and for all others."""
    return _BUDGET if model.provider_type == "anthropic" and model.capabilities.reasoning else 0


def usual_effort(model: ChatModel) -> str:
    """Returns the effort of a model of OpenAI's o-series or GPT-5; empty for all others: the vendor decides."""
    if model.provider_type != "openai" or not model.capabilities.reasoning:
        return ""
    name = model.base_model or model.name
    return next((effort for pattern, effort in _EFFORTS if pattern.match(name)), "")


def effort_of(settings: Mapping[str, Any], model: ChatModel) -> str | None:
    """Returns the effort that the settings ask for, else the usual one; settings that are declared to be OpenAI's have
    a default of their own.
    """
    effort = settings.get("reasoning_effort") or (settings.get("reasoning") or {}).get("reasoning_effort")
    if effort or not (usual := usual_effort(model)):
        return effort or None
    return _DECLARED_EFFORT if settings.get("provider_type") == "openai" else usual
