"""Profiles of the vendors that speak Anthropic's dialect. Pure.

MiniMax: platform.minimax.io/docs/api-reference/text-anthropic-api, read in November 2026.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from services.llm_gateway.vendors.shared.origins import ANTHROPIC, MINIMAX


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


ANTHROPICS = VendorProfile(betas=("thinking-binding-controls-2026-08-01",))
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
