"""Profiles of models on Bedrock: what each takes of the Converse API, by the vendor's name. Pure.

Sources, read in November 2026: docs.aws.amazon.com/bedrock/latest, APIReference (Converse, ToolChoice) and userguide
(prompt-caching, structured-output, conversation-inference-supported-models-features).
"""

from dataclasses import dataclass

from services.llm_gateway.core.models import ChatModel
from services.llm_gateway.core.tables.bedrock import base_name
from services.llm_gateway.vendors.anthropic.profiles import Claude, parse_claude
from services.llm_gateway.vendors.shared.origins import ANTHROPIC, BEDROCK

_NONE: frozenset[str] = frozenset()
_BOTH = frozenset({"any", "tool"})


@dataclass(frozen=True, slots=True)
class ModelProfile:
    """The habits of a model. `choices`: how a call may be demanded. `marks`: where cache points may stand. `schemas`:
    replies and tools by a strict schema. `tells_failures`: results have a status. `efforts`: how an effort is said, ""
    for not at all.
    """

    claude: Claude | None = None
    choices: frozenset[str] = _NONE
    marks: frozenset[str] = _NONE
    schemas: bool = False
    tells_failures: bool = False
    efforts: str = ""

    @property
    def signed_by(self) -> str:
        """Returns the origin of its signatures: Claude's are the same on every platform."""
        return ANTHROPIC if self.claude else BEDROCK


def profile_of(model: ChatModel) -> ModelProfile:
    """Returns the profile of a model."""
    name = model.base_model or base_name(model.name)
    claude = parse_claude(name)
    if claude is not None:
        return ModelProfile(
            claude,
            choices=_BOTH if claude.can_be_forced else _NONE,
            marks=frozenset({"tools", "system", "messages"}) if claude.caches else _NONE,
            # Later models have them at Anthropic, and not here.
            schemas=(4, 5) <= claude.version <= (4, 6),
            tells_failures=True,
            efforts="output" if claude.version >= (4, 5) else "",
        )
    if name.startswith("nova"):
        efforts = "nova" if name.startswith("nova-2") else ""
        return ModelProfile(
            choices=_BOTH, marks=frozenset({"system", "messages"}), tells_failures=True, efforts=efforts
        )
    if name.startswith("mistral-large"):
        return ModelProfile(choices=frozenset({"any"}))
    return ModelProfile(efforts="openai" if name.startswith("gpt-oss") else "")
