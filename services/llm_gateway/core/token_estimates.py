"""The estimate of tokens where a provider counts none."""

from collections.abc import Iterable
from typing import assert_never

from services.llm_gateway.core.chat import (
    ChatRequest,
    Image,
    Part,
    Reasoning,
    RedactedReasoning,
    Text,
    ToolCall,
    ToolResult,
)

# What vendors add for the role and the ends of a message.
_MESSAGE_TOKENS = 4
# A picture of about 1,000 by 1,000 pixels with most vendors; its bytes say little about it.
_IMAGE_TOKENS = 1_200
# By how much `estimate` is off for English prose, as a share of the tokens.
RELATIVE_ERROR = 0.2


def estimate(characters: int) -> int:
    """Returns the tokens of a text of that length: 4 characters each, rounded up.

    For English prose within about 20 % of what current tokenizers count; code and other scripts cost up to
    twice as much. Never a ground for refusing a request.
    """
    return -(-characters // 4)


def estimate_request(request: ChatRequest) -> int:
    """Returns the input tokens of a request: its messages and the tools it offers."""
    tools = sum(len(tool.name) + len(tool.description) + len(tool.parameters_json) for tool in request.tools)
    return estimate(tools) + sum(_MESSAGE_TOKENS + _estimate_parts(message.parts) for message in request.messages)


def _estimate_parts(parts: Iterable[Part]) -> int:
    return sum(map(_estimate_part, parts))


def _estimate_part(part: Part) -> int:
    match part:
        case Text() | Reasoning():
            return estimate(len(part.text))
        case RedactedReasoning():
            return estimate(len(part.data))
        case ToolCall():
            return estimate(len(part.name) + len(part.arguments_json))
        case ToolResult():
            return _estimate_parts(part.content)
        case Image():
            return _IMAGE_TOKENS
        case _:
            assert_never(part)
