"""OpenAI's models. Source, read in November 2026: developers.openai.com/api/docs/models and its pages. Pure.

Prices are those of requests with up to 272,000 input tokens; the newest models cost more above that.
"""

import re
from collections.abc import Mapping

from services.llm_gateway.core.models import Capabilities
from services.llm_gateway.core.tables.rows import KnownEmbedding, KnownModel, usd

# Log probabilities are those of models that do not reason.
_PLAIN = Capabilities(logprobs=True)
_SEEING = Capabilities(vision=True, structured_output=True, logprobs=True)
_THINKING = Capabilities(vision=True, structured_output=True, reasoning=True, temperature=False)
_O_SERIES = Capabilities(
    vision=True, structured_output=True, reasoning=True, temperature=False, parallel_tool_calls=False
)

MODELS: Mapping[str, KnownModel] = {
    "gpt-6": KnownModel(1_050_000, 128_000, _THINKING),
    "gpt-6-astra": KnownModel(1_050_000, 128_000, _THINKING, usd(10, 50, cached=1, write=12.5)),
    "gpt-6-luna": KnownModel(1_050_000, 128_000, _THINKING, usd(0.1, 0.5)),
    "gpt-6.1": KnownModel(1_050_000, 128_000, _THINKING),
    "gpt-6.1-sol": KnownModel(1_050_000, 128_000, _THINKING, usd(2, 10, cached=0.1)),
    "gpt-6.1-terra": KnownModel(1_050_000, 128_000, _THINKING, usd(1, 5)),
    "gpt-6.2": KnownModel(1_050_000, 128_000, _THINKING),
    "gpt-6.2-sol": KnownModel(1_050_000, 128_000, _THINKING, usd(2, 10, cached=0.1, write=2.5)),
    "gpt-5.6": KnownModel(1_050_000, 128_000, _THINKING, usd(4, 20)),
    "gpt-5.6-terra": KnownModel(1_050_000, 128_000, _THINKING, usd(2, 12)),
    "gpt-5.6-luna": KnownModel(1_050_000, 128_000, _THINKING),
    "gpt-5.5": KnownModel(1_050_000, 128_000, _THINKING, usd(5, 30)),
    "gpt-5.4": KnownModel(1_050_000, 128_000, _THINKING, usd(2.5, 15)),
    "gpt-5.4-mini": KnownModel(400_000, 128_000, _THINKING, usd(0.75, 4.5)),
    "gpt-5.4-nano": KnownModel(400_000, 128_000, _THINKING),
    "gpt-5.2": KnownModel(400_000, 128_000, _THINKING),
    "gpt-5.1": KnownModel(400_000, 128_000, _THINKING),
    "gpt-5": KnownModel(400_000, 128_000, _THINKING),
    "gpt-5-mini": KnownModel(400_000, 128_000, _THINKING, usd(0.25, 2, cached=0.025)),
    "gpt-5-chat": KnownModel(128_000, 16_384, Capabilities(vision=True, structured_output=True, tools=False)),
    "gpt-4.1": KnownModel(1_047_576, 32_768, _SEEING, usd(2, 8, cached=0.5)),
    "gpt-4.1-mini": KnownModel(1_047_576, 32_768, _SEEING, usd(0.4, 1.6, cached=0.1)),
    "gpt-4.1-nano": KnownModel(1_047_576, 32_768, _SEEING, usd(0.1, 0.4, cached=0.025)),
    "gpt-4o": KnownModel(128_000, 16_384, _SEEING, usd(2.5, 10, cached=1.25)),
    "gpt-4o-mini": KnownModel(128_000, 16_384, _SEEING, usd(0.15, 0.6, cached=0.075)),
    "gpt-4o-2024-05-13": KnownModel(128_000, 4_096, _SEEING, usd(5, 15)),
    "gpt-4-turbo": KnownModel(128_000, 4_096, Capabilities(vision=True, logprobs=True)),
    "gpt-4": KnownModel(8_192, 8_192, _PLAIN, usd(30, 60)),
    "gpt-3.5-turbo": KnownModel(16_385, 4_096, _PLAIN),
    "o4-mini": KnownModel(200_000, 100_000, _O_SERIES, usd(1.1, 4.4, cached=0.275)),
    "o3": KnownModel(200_000, 100_000, _O_SERIES),
    "o3-mini": KnownModel(200_000, 100_000, _O_SERIES),
    "o1": KnownModel(200_000, 100_000, _O_SERIES),
}
# Listed by the same endpoint and not for chats with tools: other media, other routes, older kinds.
NOT_CHAT = re.compile(
    r"audio|realtime|transcribe|tts|image|search|embedding|moderation|instruct|whisper|dall-e|codex|deep-research"
    r"|^(gpt-5.*|o\d)-pro|^o1-(mini|preview)|^gpt-4-(0125|1106|vision|32k)"
)

EMBEDDINGS: Mapping[str, KnownEmbedding] = {
    "text-embedding-3-small": KnownEmbedding(1_536, 512, usd(0.02)),
    "text-embedding-3-large": KnownEmbedding(3_072, 512, usd(0.13)),
    "text-embedding-ada-002": KnownEmbedding(1_536, 512, usd(0.1)),
}
