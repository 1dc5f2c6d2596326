"""Models of the vendors that speak Chat Completions and do not say all of this at GET /models. Pure.

Sources, read in November 2026: api-docs.deepseek.com/quick_start/pricing (the prices of the peak hours; at other hours
half), console.groq.com/docs/models, docs.mistral.ai/models, platform.kimi.ai/docs/pricing, docs.x.ai/developers (up to
200,000 tokens of input; above that twice as much), docs.z.ai/guides. Cerebras has none here: its windows follow from
the account's tier. OpenRouter, Together, Fireworks, Baseten and Hugging Face say theirs at the endpoint.
"""

from collections.abc import Mapping
from dataclasses import replace

from services.llm_gateway.core.models import Capabilities
from services.llm_gateway.core.tables.rows import KnownEmbedding, KnownModel, usd

_PLAIN = Capabilities()
_SEEING = Capabilities(vision=True, structured_output=True)
_THINKING = Capabilities(reasoning=True)
_THINKING_SCHEMA = Capabilities(reasoning=True, structured_output=True)
_THINKING_SEEING = Capabilities(reasoning=True, vision=True, structured_output=True)
# Sampling parameters have no effect while it thinks, or are fixed.
_FIXED = replace(_THINKING, temperature=False)
_FIXED_SEEING = replace(_FIXED, vision=True)

_FLASH = KnownModel(1_000_000, 384_000, _FIXED_SEEING, usd(0.3, 1.2, cached=0.006))
_DEEPSEEK: Mapping[str, KnownModel] = {
    "deepseek-flash": _FLASH,
    "deepseek-v4-flash": _FLASH,
    "deepseek-v4-pro": KnownModel(1_000_000, 384_000, _FIXED, usd(1.32, 3.96, cached=0.044)),
    # Of the third generation, which compatible endpoints still serve.
    "deepseek-reasoner": KnownModel(128_000, 64_000, _FIXED),
    "deepseek-chat": KnownModel(128_000, 8_000, _PLAIN),
}
_GROQ: Mapping[str, KnownModel] = {
    "openai/gpt-oss-120b": KnownModel(131_072, 65_536, _THINKING_SCHEMA, usd(0.15, 0.6)),
    "openai/gpt-oss-20b": KnownModel(131_072, 65_536, _THINKING_SCHEMA, usd(0.075, 0.3)),
    "llama-3.3-70b-versatile": KnownModel(131_072, 32_768, _PLAIN, usd(0.59, 0.79)),
    "llama-3.1-8b-instant": KnownModel(131_072, 131_072, _PLAIN, usd(0.05, 0.08)),
}
_MEDIUM = KnownModel(256_000, None, _THINKING_SEEING, usd(1.5, 7.5))
_MISTRAL: Mapping[str, KnownModel] = {
    "mistral-medium-3.5": _MEDIUM,
    "mistral-medium-3-5": _MEDIUM,
    "mistral-medium-latest": _MEDIUM,
    "magistral-medium": KnownModel(128_000, None, _THINKING_SEEING),
    "magistral-small": KnownModel(128_000, None, _THINKING_SEEING),
    "mistral-large": KnownModel(256_000, None, _SEEING),
}
_MOONSHOT: Mapping[str, KnownModel] = {
    "kimi-k3": KnownModel(1_048_576, None, _FIXED_SEEING, usd(3, 15, cached=0.3)),
    "kimi-k2.6": KnownModel(262_144, None, _FIXED_SEEING),
    "kimi-k2.5": KnownModel(262_144, None, _FIXED_SEEING),
}
_XAI: Mapping[str, KnownModel] = {
    "grok-4.6": KnownModel(500_000, None, _THINKING_SEEING, usd(2, 6)),
    "grok-4.5": KnownModel(500_000, None, _THINKING_SEEING, usd(2, 6, cached=0.5)),
    "grok-4.3": KnownModel(1_000_000, None, _THINKING_SEEING, usd(1.25, 2.5)),
}
_ZAI: Mapping[str, KnownModel] = {
    "glm-5": KnownModel(200_000, 128_000, _THINKING, usd(1, 3.2, cached=0.2)),
    "glm-4.7": KnownModel(200_000, 128_000, _THINKING, usd(0.6, 2.2, cached=0.11)),
    "glm-4.6": KnownModel(200_000, 128_000, _THINKING, usd(0.6, 2.2, cached=0.11)),
    "glm-4.5": KnownModel(128_000, 96_000, _THINKING, usd(0.6, 2.2, cached=0.11)),
    "glm-4.5-air": KnownModel(128_000, 96_000, _THINKING, usd(0.2, 1.1, cached=0.03)),
}
# The coding plan is a flat fee.
_ZAI_CODING = {name: replace(row, price=None) for name, row in _ZAI.items()}

MODELS: Mapping[str, Mapping[str, KnownModel]] = {
    "deepseek": _DEEPSEEK,
    "groq": _GROQ,
    "mistral": _MISTRAL,
    "moonshot": _MOONSHOT,
    "xai": _XAI,
    "zai": _ZAI,
    "zai_coding": _ZAI_CODING,
}
EMBEDDINGS: Mapping[str, Mapping[str, KnownEmbedding]] = {"mistral": {"mistral-embed": KnownEmbedding(1_024, 128)}}
