"""Models of the vendors that speak Chat Completions and do not say all of this at GET /models. Pure.

Sources, read in November 2026: api-docs.deepseek.com/quick_start/pricing (the prices of the peak hours; at other hours
half), console.groq.com/docs/models, docs.mistral.ai/models, platform.kimi.ai/docs/pricing, docs.x.ai/developers (up to
200,000 tokens of input; above that twice as much), docs.z.ai/guides. Cerebras has none here: its windows follow from
the account's tier. OpenRouter, Together, Fireworks, Baseten and Hugging Face say theirs at the endpoint.
"""

from collections.abc import Mapping
from dataclasses import replace

from services.llm_gateway.core.models import Capabilities
from services.llm_gateway.core.tables.rows import Known, KnownEmbedding, usd

_PLAIN = Capabilities()
_SEEING = Capabilities(vision=True, structured_output=True)
_THINKING = Capabilities(reasoning=True)
_THINKING_SCHEMA = Capabilities(reasoning=True, structured_output=True)
_THINKING_SEEING = Capabilities(reasoning=True, vision=True, structured_output=True)
# Sampling parameters have no effect while it thinks, or are fixed.
_FIXED = replace(_THINKING, temperature=False)
_FIXED_SEEING = replace(_FIXED, vision=True)

_FLASH = Known(1_000_000, 384_000, _FIXED_SEEING, usd(0.3, 1.2, cached=0.006))
_DEEPSEEK: Mapping[str, Known] = {
    "deepseek-flash": _FLASH,
    "deepseek-v4-flash": _FLASH,
    "deepseek-v4-pro": Known(1_000_000, 384_000, _FIXED, usd(1.32, 3.96, cached=0.044)),
    # Of the third generation, which compatible endpoints still serve.
    "deepseek-reasoner": Known(128_000, 64_000, _FIXED),
    "deepseek-chat": Known(128_000, 8_000, _PLAIN),
}
_GROQ: Mapping[str, Known] = {
    "openai/gpt-oss-120b": Known(131_072, 65_536, _THINKING_SCHEMA, usd(0.15, 0.6)),
    "openai/gpt-oss-20b": Known(131_072, 65_536, _THINKING_SCHEMA, usd(0.075, 0.3)),
    "llama-3.3-70b-versatile": Known(131_072, 32_768, _PLAIN, usd(0.59, 0.79)),
    "llama-3.1-8b-instant": Known(131_072, 131_072, _PLAIN, usd(0.05, 0.08)),
}
_MEDIUM = Known(256_000, None, _THINKING_SEEING, usd(1.5, 7.5))
_MISTRAL: Mapping[str, Known] = {
    "mistral-medium-3.5": _MEDIUM,
    "mistral-medium-3-5": _MEDIUM,
    "mistral-medium-latest": _MEDIUM,
    "magistral-medium": Known(128_000, None, _THINKING_SEEING),
    "magistral-small": Known(128_000, None, _THINKING_SEEING),
    "mistral-large": Known(256_000, None, _SEEING),
}
_MOONSHOT: Mapping[str, Known] = {
    "kimi-k3": Known(1_048_576, None, _FIXED_SEEING, usd(3, 15, cached=0.3)),
    "kimi-k2.6": Known(262_144, None, _FIXED_SEEING),
    "kimi-k2.5": Known(262_144, None, _FIXED_SEEING),
}
_XAI: Mapping[str, Known] = {
    "grok-4.6": Known(500_000, None, _THINKING_SEEING, usd(2, 6)),
    "grok-4.5": Known(500_000, None, _THINKING_SEEING, usd(2, 6, cached=0.5)),
    "grok-4.3": Known(1_000_000, None, _THINKING_SEEING, usd(1.25, 2.5)),
}
_ZAI: Mapping[str, Known] = {
    "glm-5": Known(200_000, 128_000, _THINKING, usd(1, 3.2, cached=0.2)),
    "glm-4.7": Known(200_000, 128_000, _THINKING, usd(0.6, 2.2, cached=0.11)),
    "glm-4.6": Known(200_000, 128_000, _THINKING, usd(0.6, 2.2, cached=0.11)),
    "glm-4.5": Known(128_000, 96_000, _THINKING, usd(0.6, 2.2, cached=0.11)),
    "glm-4.5-air": Known(128_000, 96_000, _THINKING, usd(0.2, 1.1, cached=0.03)),
}
# The coding plan is a flat fee.
_ZAI_CODING = {name: replace(row, price=None) for name, row in _ZAI.items()}

MODELS: Mapping[str, Mapping[str, Known]] = {
    "deepseek": _DEEPSEEK,
    "groq": _GROQ,
    "mistral": _MISTRAL,
    "moonshot": _MOONSHOT,
    "xai": _XAI,
    "zai": _ZAI,
    "zai_coding": _ZAI_CODING,
}
EMBEDDINGS: Mapping[str, Mapping[str, KnownEmbedding]] = {"mistral": {"mistral-embed": KnownEmbedding(1_024, 128)}}
