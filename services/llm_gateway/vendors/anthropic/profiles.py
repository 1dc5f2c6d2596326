"""Profiles of the vendors that speak Anthropic's dialect, and of Claude models by name: what each takes and refuses, on
Anthropic's own API as on others'. Pure.

Sources, read in November 2026: platform.minimax.io/docs/api-reference/text-anthropic-api;
platform.claude.com/docs/en/build-with-claude/{thinking-troubleshooting,preserved-thinking} and what is new in each
model. Of a model that is named otherwise nothing is assumed.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from services.llm_gateway.core.chat import Message, Part, Reasoning, RedactedReasoning, Role
from services.llm_gateway.vendors.shared.origins import ANTHROPIC, MINIMAX, own_value


@dataclass(frozen=True, slots=True)
class VendorProfile:
    """The habits of a vendor. `origin`: the origin of its thoughts (origins.py). `betas`: values of the header
    `anthropic-beta`. `temperatures`: the least and the highest it takes, None where it takes none. `ignores`: settings
    that have no effect there.
    """

    origin: str = ANTHROPIC
    betas: tuple[str, ...] = ()
    temperatures: tuple[float, float] | None = None
    strict_tools: bool = True
    ignores: frozenset[str] = frozenset()


# Allows `block_binding`.
BINDING_BETA = "thinking-binding-controls-2026-08-01"
ANTHROPICS = VendorProfile(betas=(BINDING_BETA,))
_DIALECTS: Mapping[str, VendorProfile] = {
    "anthropic": ANTHROPICS,
    "minimax": VendorProfile(
        MINIMAX,
        temperatures=(0.01, 1.0),
        strict_tools=False,
        ignores=frozenset({"stop_sequences", "service_tier", "effort"}),
    ),
}


def profile_of(provider_type: str) -> VendorProfile:
    """Returns the profile of a provider type."""
    return _DIALECTS.get(provider_type, ANTHROPICS)


# A date of eight digits is no minor version.
_MINOR = r"(?:-(\d{1,2})(?!\d))?"
_NAME = re.compile(rf"claude-(?:(\d){_MINOR}-)?(opus|sonnet|haiku|fable|mythos)(?:-(\d){_MINOR})?(?!\d)")
# The least that a thinking model writes beside its budget.
_LEAST_BESIDE_BUDGET = 1_024
_HIGHEST_EFFORTS = ("xhigh", "max")


@dataclass(frozen=True, slots=True)
class Claude:
    """A model by its line and version; one without a version (claude-mythos-preview) has version (4, 6)."""

    line: str
    version: tuple[int, int]

    @property
    def thinks_by_budget_alone(self) -> bool:
        """Thinking is `enabled` with a budget; `adaptive` is refused."""
        return self.version < (4, 6)

    @property
    def takes_budgets(self) -> bool:
        """A budget is accepted, if only for compatibility."""
        return self.version <= (4, 6)

    @property
    def always_thinks(self) -> bool:
        """Thinking cannot be turned off."""
        return self.line in ("fable", "mythos") or (self.line == "opus" and self.version >= (5, 5))

    @property
    def can_be_forced(self) -> bool:
        """It may be told that it must call a tool."""
        return not (self.line in ("fable", "mythos") or (self.line != "haiku" and self.version >= (5, 5)))

    @property
    def binds_thoughts(self) -> bool:
        """A thought is valid only behind the very system prompt, tools and messages before which it was thought. The
        prompt of an agent holds its memory, which changes: then thoughts are to be dropped instead of refused.
        """
        return self.version >= (5, 5) or (self.line in ("fable", "mythos") and self.version >= (5, 1))

    @property
    def caches(self) -> bool:
        """It caches prompts, on every platform."""
        return self.version >= (3, 7)


def parse_claude(name: str) -> Claude | None:
    """Returns the model that a name says, also within longer ones ("us.anthropic.claude-..."); None for another
    vendor's.
    """
    match = _NAME.search(name)
    if match is None:
        return None
    major, minor = (match[1], match[2]) if match[1] else (match[4], match[5])
    return Claude(match[3], (int(major), int(minor or 0)) if major else (4, 6))


def thinking_of(
    setting: Mapping[str, Any] | None,
    claude: Claude,
    messages: Sequence[Message],
    *,
    effort: str | None,
    forced: bool,
    redacted_by: str = ANTHROPIC,
) -> dict[str, Any] | None:
    """Returns the request's `thinking`, None for none: as near to what is wanted as the model takes. `forced`: it must
    call; `redacted_by`: whose encrypted thoughts it is shown.

    A budget becomes `adaptive` where the model takes none; `disabled` becomes the least it does. A model that thinks
    cannot be forced. By budget it must have thought at the beginning of a turn that goes on, which it has not where
    another vendor's model began it.
    """
    kind = (setting or {}).get("type")
    if forced or (kind == "adaptive" and claude.thinks_by_budget_alone):
        kind = None
    elif kind == "enabled" and claude.takes_budgets:
        return None if _turn_began_without_thoughts(messages, redacted_by) else dict(setting or {})
    elif kind == "disabled" and (claude.line, claude.version) == ("sonnet", (5, 5)) and effort not in _HIGHEST_EFFORTS:
        kind = "between_tools"
    elif kind == "disabled" and (claude.always_thinks or (claude.version >= (5, 0) and effort in _HIGHEST_EFFORTS)):
        kind = None
    if kind in ("disabled", "between_tools"):
        return {"type": kind}
    if kind is None and (forced or not claude.binds_thoughts):
        return None
    thinking: dict[str, Any] = {"type": "adaptive"}
    if kind is not None:
        thinking["display"] = (setting or {}).get("display") or "summarized"
    return (
        {**thinking, "block_binding": {"prefix_mismatch_behavior": "drop_block"}} if claude.binds_thoughts else thinking
    )


def room_for(thinking: Mapping[str, Any] | None, limit: int | None, most: int | None) -> int | None:
    """Returns the limit of a reply of `setting` tokens (None: not said), of which the model writes at most `most`: a
    budget of thoughts counts into it, and has to be below.
    """
    budget = (thinking or {}).get("budget_tokens")
    if limit is None or not isinstance(budget, int) or budget < limit:
        return limit
    room = budget + _LEAST_BESIDE_BUDGET
    return room if most is None else min(room, most)


def shows_thoughts(claude: Claude | None, thinking: Mapping[str, Any] | None) -> bool:
    """Returns whether earlier thoughts go along. Where the model would refuse those that fit no more, it is
    shown none.
    """
    return claude is None or not claude.binds_thoughts or "block_binding" in (thinking or {})


def _turn_began_without_thoughts(messages: Sequence[Message], redacted_by: str) -> bool:
    """Returns whether a turn goes on (results came after the last reply) whose first reply does not begin with a
    thought of Claude's own.
    """
    since = next((place for place, each in enumerate(reversed(messages)) if each.role is Role.ASSISTANT), 0)
    if not any(message.role is Role.TOOL for message in messages[len(messages) - since :]):
        return False
    first = None
    for message in reversed(messages[: len(messages) - since]):
        if message.role is Role.USER:
            break
        if message.role is Role.ASSISTANT and message.parts:
            first = message.parts[0]
    return first is None or not _is_own_thought(first, redacted_by)


def _is_own_thought(part: Part, redacted_by: str) -> bool:
    if isinstance(part, Reasoning):
        return own_value(ANTHROPIC, part.signature) is not None
    return isinstance(part, RedactedReasoning) and own_value(redacted_by, part.data) is not None
