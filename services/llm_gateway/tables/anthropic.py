"""Anthropic's models. Source, read in November 2026: platform.claude.com/docs/en/models. Pure."""

from collections.abc import Mapping

from services.llm_gateway.provider import Capabilities
from services.llm_gateway.tables.rows import Known

_CLAUDE = Capabilities(vision=True, reasoning=True, temperature=False)
_CLAUDE_STRICT = Capabilities(vision=True, reasoning=True, structured_output=True, temperature=False)
MODELS: Mapping[str, Known] = {
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
