"""Google's models. Pure.

Sources, read in November 2026: windows and capabilities ai.google.dev/gemini-api/docs/models and
docs.cloud.google.com/gemini-enterprise-agent-platform/models; prices ai.google.dev/gemini-api/docs/pricing (paid tier,
standard, text, prompts up to 200,000 tokens). Gemini 4 Argon and Carbon cost half until 30 November 2026, 3.6 to 3.8
Flash until 31 December 2026; what is here is the price of these days, to be doubled then.
"""

import re
from collections.abc import Mapping

from services.llm_gateway.core.models import Capabilities
from services.llm_gateway.core.tables.rows import KnownEmbedding, KnownModel, usd

# Sampling parameters are ignored from 3.6 on, and by 3.5 Flash-Lite.
_NEW = Capabilities(vision=True, reasoning=True, structured_output=True, temperature=False)
_SAMPLED = Capabilities(vision=True, reasoning=True, structured_output=True)
_WINDOW = 1_048_576
_MOST = 65_536

MODELS: Mapping[str, KnownModel] = {
    # Their window holds input and output together.
    "gemini-4-argon": KnownModel(_WINDOW, _MOST, _NEW, usd(2, 10, cached=0.1)),
    "gemini-4-carbon": KnownModel(_WINDOW, _MOST, _NEW, usd(2, 10, cached=0.1)),
    "gemini-4-hydrogen": KnownModel(_WINDOW, _MOST, _NEW, usd(1.5, 7.5, cached=0.075)),
    "gemini-3.8-flash": KnownModel(_WINDOW, _MOST, _NEW, usd(0.75, 3.75, cached=0.075)),
    "gemini-3.7-flash": KnownModel(_WINDOW, _MOST, _NEW, usd(0.75, 3.75, cached=0.075)),
    "gemini-3.6-flash": KnownModel(_WINDOW, _MOST, _NEW, usd(0.75, 3.75, cached=0.075)),
    "gemini-3.5-flash": KnownModel(_WINDOW, _MOST, _SAMPLED, usd(1.5, 9, cached=0.15)),
    "gemini-3.5-flash-lite": KnownModel(_WINDOW, _MOST, _NEW, usd(0.3, 2.5, cached=0.03)),
    "gemini-3.1-flash-lite": KnownModel(_WINDOW, _MOST, _SAMPLED, usd(0.25, 1.5, cached=0.025)),
    "gemini-3.1-pro-preview": KnownModel(_WINDOW, _MOST, _SAMPLED, usd(2, 12, cached=0.2)),
    "gemini-3-flash-preview": KnownModel(_WINDOW, _MOST, _SAMPLED, usd(0.5, 3, cached=0.05)),
    "gemini-2.5-pro": KnownModel(_WINDOW, _MOST, _SAMPLED, usd(1.25, 10, cached=0.125)),
    "gemini-2.5-flash": KnownModel(_WINDOW, _MOST, _SAMPLED, usd(0.3, 2.5, cached=0.03)),
    "gemini-2.5-flash-lite": KnownModel(_WINDOW, _MOST, _SAMPLED, usd(0.1, 0.4, cached=0.01)),
}
# Listed as makers of content like all others, and not for chats with tools: other media, other routes.
NOT_CHAT = re.compile(r"image|banana|tts|audio|live|omni|transcribe|translate|robotics|computer-use|embedding|aqa")

# How many texts one batch may have: 100.
EMBEDDINGS: Mapping[str, KnownEmbedding] = {
    "gemini-embedding-2": KnownEmbedding(3_072, 100, usd(0.2)),
    "gemini-embedding-001": KnownEmbedding(3_072, 100, usd(0.15)),
}
# Served by Vertex alone, by another route.
VERTEX_EMBEDDINGS: Mapping[str, KnownEmbedding] = {
    "text-embedding-005": KnownEmbedding(768, 250),
    "text-multilingual-embedding-002": KnownEmbedding(768, 250),
}
