"""MiniMax's models. Sources, read in November 2026: platform.minimax.io/docs/api-reference/text-anthropic-api (windows,
what they take) and /guides/pricing-paygo (prices). Pure.

How much a model may write their pages do not say. MiniMax-M3 costs twice as much where the prompt is over 512,000
tokens: the price here is that of a shorter one.
"""

from collections.abc import Mapping

from services.llm_gateway.core.models import Capabilities
from services.llm_gateway.core.tables.rows import KnownModel, usd

_BLIND = Capabilities(reasoning=True)
_SEEING = Capabilities(reasoning=True, vision=True)
_M2_WINDOW = 204_800

MODELS: Mapping[str, KnownModel] = {
    "MiniMax-M3.1-Flash": KnownModel(1_000_000, None, _SEEING, usd(0.15, 0.6, cached=0.015)),
    "MiniMax-M3": KnownModel(1_000_000, None, _SEEING, usd(0.3, 1.2, cached=0.06)),
    "MiniMax-M2.7": KnownModel(_M2_WINDOW, None, _BLIND, usd(0.3, 1.2, cached=0.06, write=0.375)),
    "MiniMax-M2.7-highspeed": KnownModel(_M2_WINDOW, None, _BLIND, usd(0.6, 2.4, cached=0.06, write=0.375)),
    "MiniMax-M2.5": KnownModel(_M2_WINDOW, None, _BLIND, usd(0.3, 1.2, cached=0.03, write=0.375)),
    "MiniMax-M2.5-highspeed": KnownModel(_M2_WINDOW, None, _BLIND),
    "MiniMax-M2.1": KnownModel(_M2_WINDOW, None, _BLIND),
    "MiniMax-M2": KnownModel(_M2_WINDOW, None, _BLIND),
}
