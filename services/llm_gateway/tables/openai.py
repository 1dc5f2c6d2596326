"""OpenAI's models. Source, read in November 2026: developers.openai.com/api/docs/models. Pure."""

import re
from collections.abc import Mapping

from services.llm_gateway.provider import Capabilities
from services.llm_gateway.tables.rows import Known, KnownEmbedding

_PLAIN = Capabilities()
_SEEING = Capabilities(vision=True, structured_output=True)
_THINKING = Capabilities(vision=True, structured_output=True, reasoning=True, temperature=False)
_O_SERIES = Capabilities(
    vision=True, structured_output=True, reasoning=True, temperature=False, parallel_tool_calls=False
)

MODELS: Mapping[str, Known] = {
    "gpt-6": Known(1_050_000, 128_000, _THINKING),
    "gpt-6.1": Known(1_050_000, 128_000, _THINKING),
    "gpt-6.2": Known(1_050_000, 128_000, _THINKING),
    "gpt-5.6": Known(1_050_000, 128_000, _THINKING),
    "gpt-5.5": Known(1_050_000, 128_000, _THINKING),
    "gpt-5.4": Known(1_050_000, 128_000, _THINKING),
    "gpt-5.4-mini": Known(400_000, 128_000, _THINKING),
    "gpt-5.4-nano": Known(400_000, 128_000, _THINKING),
    "gpt-5.2": Known(400_000, 128_000, _THINKING),
    "gpt-5.1": Known(400_000, 128_000, _THINKING),
    "gpt-5": Known(400_000, 128_000, _THINKING),
    "gpt-5-chat": Known(128_000, 16_384, Capabilities(vision=True, structured_output=True, tools=False)),
    "gpt-4.1": Known(1_047_576, 32_768, _SEEING),
    "gpt-4o": Known(128_000, 16_384, _SEEING),
    "gpt-4o-2024-05-13": Known(128_000, 4_096, _SEEING),
    "gpt-4-turbo": Known(128_000, 4_096, Capabilities(vision=True)),
    "gpt-4": Known(8_192, 8_192, _PLAIN),
    "gpt-3.5-turbo": Known(16_385, 4_096, _PLAIN),
    "o4-mini": Known(200_000, 100_000, _O_SERIES),
    "o3": Known(200_000, 100_000, _O_SERIES),
    "o3-mini": Known(200_000, 100_000, _O_SERIES),
    "o1": Known(200_000, 100_000, _O_SERIES),
}
# Listed by the same endpoint and not for chats with tools: other media, other routes, older kinds.
NOT_CHAT = re.compile(
    r"audio|realtime|transcribe|tts|image|search|embedding|moderation|instruct|whisper|dall-e|codex|deep-research"
    r"|^(gpt-5.*|o\d)-pro|^o1-(mini|preview)|^gpt-4-(0125|1106|vision|32k)"
)

EMBEDDINGS: Mapping[str, KnownEmbedding] = {
    "text-embedding-3-small": KnownEmbedding(1_536, 512),
    "text-embedding-3-large": KnownEmbedding(3_072, 512),
    "text-embedding-ada-002": KnownEmbedding(1_536, 512),
}
