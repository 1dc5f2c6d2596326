"""The table of models that ships with Loci: what their vendors publish and their endpoints do not say.

Rows are found by the longest name that the model's name equals or continues after "-" (dates, "preview"), ":"
or "@". Sources, read in November 2026: developers.openai.com/api/docs/models,
platform.claude.com/docs/en/models.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from services.llm_gateway.provider import Capabilities


@dataclass(frozen=True, slots=True)
class Known:
    """Window and most output of one reply, in tokens, and what the model can do."""

    context_window: int
    max_output_tokens: int
    capabilities: Capabilities


_PLAIN = Capabilities()
_SEEING = Capabilities(vision=True, structured_output=True)
_THINKING = Capabilities(vision=True, structured_output=True, reasoning=True, temperature=False)
_O_SERIES = Capabilities(
    vision=True, structured_output=True, reasoning=True, temperature=False, parallel_tool_calls=False
)

_OPENAI: Mapping[str, Known] = {
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
_NOT_CHAT = re.compile(
    r"audio|realtime|transcribe|tts|image|search|embedding|moderation|instruct|whisper|dall-e|codex|deep-research"
    r"|^(gpt-5.*|o\d)-pro|^o1-(mini|preview)|^gpt-4-(0125|1106|vision|32k)"
)

_CLAUDE = Capabilities(vision=True, reasoning=True, temperature=False)
_CLAUDE_STRICT = Capabilities(vision=True, reasoning=True, structured_output=True, temperature=False)
_ANTHROPIC: Mapping[str, Known] = {
    "claude-fable-5": Known(1_000_000, 128_000, _CLAUDE_STRICT),
    "claude-mythos-5": Known(1_000_000, 128_000, _CLAUDE_STRICT),
    "claude-opus-5": Known(1_000_000, 128_000, _CLAUDE_STRICT),
    "claude-sonnet-5": Known(1_000_000, 128_000, _CLAUDE_STRICT),
    "claude-haiku-5": Known(1_000_000, 64_000, _CLAUDE_STRICT),
    "claude-opus-4-8": Known(1_000_000, 128_000, _CLAUDE_STRICT),
    "claude-opus-4-7": Known(1_000_000, 128_000, _CLAUDE_STRICT),
    "claude-opus-4-6": Known(1_000_000, 128_000, _CLAUDE_STRICT),
    "claude-sonnet-4-6": Known(1_000_000, 64_000, _CLAUDE_STRICT),
    "claude-opus-4-5": Known(200_000, 64_000, _CLAUDE_STRICT),
    "claude-sonnet-4-5": Known(200_000, 64_000, _CLAUDE_STRICT),
    "claude-haiku-4-5": Known(200_000, 64_000, _CLAUDE_STRICT),
    "claude-opus-4": Known(200_000, 32_000, _CLAUDE),
    "claude-sonnet-4": Known(200_000, 64_000, _CLAUDE),
}
_TABLES = {"openai": _OPENAI, "anthropic": _ANTHROPIC}

# Dimensions and most texts of one call.
EMBEDDINGS: Mapping[str, Mapping[str, tuple[int, int]]] = {
    "loci": {"hash": (384, 2_048)},
    "openai": {
        "text-embedding-3-small": (1_536, 512),
        "text-embedding-3-large": (3_072, 512),
        "text-embedding-ada-002": (1_536, 512),
    },
}
# What is assumed of a model that is in no table: whoever serves it says no only when asked.
UNLISTED = Capabilities(vision=True)


def known(provider_type: str, name: str) -> Known | None:
    """The row for a model, or None. Models that are not for chat have none."""
    table = _TABLES.get(provider_type, {})
    if provider_type == "openai" and _NOT_CHAT.search(name):
        return None
    if name.startswith("ft:"):  # a fine-tuned model is named ft:<base>:<organisation>:...
        name = name.split(":")[1]
    rows = [row for row in table if name == row or (name.startswith(row) and name[len(row)] in "-:@")]
    return table[max(rows, key=len)] if rows else None
