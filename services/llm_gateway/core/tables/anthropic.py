"""Anthropic's models. Source, read in November 2026: platform.claude.com/docs/en/about-claude/{models,pricing}. Pure.

Prices of cache writes are those for five minutes. Claude Haiku 5.5 costs five times as much for a whole request whose
prompt is over 100,000 tokens: the price here is that of a shorter one.
"""

from collections.abc import Mapping

from services.llm_gateway.core.models import Capabilities, Price
from services.llm_gateway.core.tables.rows import KnownModel, usd

_CLAUDE = Capabilities(vision=True, reasoning=True, temperature=False)
_CLAUDE_STRICT = Capabilities(vision=True, reasoning=True, structured_output=True, temperature=False)


def _of_1m(price: Price) -> KnownModel:
    return KnownModel(1_000_000, 128_000, _CLAUDE_STRICT, price)


_OPUS = usd(5, 25, cached=0.5, write=6.25)
_OLD_OPUS = usd(15, 75, cached=1.5, write=18.75)
_SONNET = usd(3, 15, cached=0.3, write=3.75)
_HAIKU = usd(1, 5, cached=0.1, write=1.25)
_FABLE = usd(10, 50, cached=1, write=12.5)
_FABLE_5_1 = usd(10, 50, cached=0.25, write=12.5)

MODELS: Mapping[str, KnownModel] = {
    "claude-fable-5-1": _of_1m(_FABLE_5_1),
    "claude-mythos-5-1": _of_1m(_FABLE_5_1),
    "claude-fable-5": _of_1m(_FABLE),
    "claude-mythos-5": _of_1m(_FABLE),
    "claude-opus-5-5": _of_1m(usd(4, 20, cached=0.2, write=5)),
    "claude-sonnet-5-5": _of_1m(usd(2, 10, cached=0.1, write=2.5)),
    "claude-haiku-5-5": _of_1m(usd(0.1, 0.5, cached=0.01, write=0.125)),
    "claude-opus-5": _of_1m(_OPUS),
    "claude-sonnet-5": _of_1m(usd(2, 10, cached=0.2, write=2.5)),
    "claude-opus-4-8": _of_1m(_OPUS),
    "claude-opus-4-7": _of_1m(_OPUS),
    "claude-opus-4-6": _of_1m(_OPUS),
    "claude-sonnet-4-6": KnownModel(1_000_000, 64_000, _CLAUDE_STRICT, _SONNET),
    "claude-opus-4-5": KnownModel(200_000, 64_000, _CLAUDE_STRICT, _OPUS),
    "claude-sonnet-4-5": KnownModel(200_000, 64_000, _CLAUDE_STRICT, _SONNET),
    "claude-haiku-4-5": KnownModel(200_000, 64_000, _CLAUDE_STRICT, _HAIKU),
    "claude-opus-4-1": KnownModel(200_000, 32_000, _CLAUDE, _OLD_OPUS),
    "claude-opus-4": KnownModel(200_000, 32_000, _CLAUDE, _OLD_OPUS),
    "claude-sonnet-4": KnownModel(200_000, 64_000, _CLAUDE, _SONNET),
}
