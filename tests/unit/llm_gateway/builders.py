"""Short ways to write chats in tests."""

from collections.abc import AsyncGenerator, Sequence
from typing import Any

import orjson

from services.llm_gateway.core.chat import (
    ChatRequest,
    Event,
    Message,
    Part,
    Role,
    Text,
    ToolCall,
    ToolResult,
    ToolSpec,
)
from services.llm_gateway.core.known_models import UNLISTED, known
from services.llm_gateway.core.models import ChatModel, ValueSource
from services.llm_gateway.core.provider_config import ProviderConfig


def system(text: str) -> Message:
    return Message(Role.SYSTEM, [Text(text)])


def user(*parts: Part | str) -> Message:
    return Message(Role.USER, [Text(part) if isinstance(part, str) else part for part in parts])


def assistant(*parts: Part | str) -> Message:
    return Message(Role.ASSISTANT, [Text(part) if isinstance(part, str) else part for part in parts])


def results(*pairs: tuple[str, str], is_error: bool = False) -> Message:
    """A tool message; each pair is a call's id and its result."""
    return Message(Role.TOOL, [ToolResult(id, [Text(text)], is_error) for id, text in pairs])


def call(id: str, name: str, **arguments: Any) -> ToolCall:
    return ToolCall(id, name, orjson.dumps(arguments).decode())


def tool(name: str, *, required: Sequence[str] = (), strict: bool = False, **types: str) -> ToolSpec:
    """A tool whose arguments have the given JSON types."""
    properties = {argument: {"type": kind} for argument, kind in types.items()}
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return ToolSpec(name, f"Does {name}.", orjson.dumps(schema).decode(), strict)


def request(*messages: Message, handle: str = "openai/gpt-4o-mini", **options: Any) -> ChatRequest:
    return ChatRequest(handle, messages, **options)


def model(handle: str, *, window: int | None = None) -> ChatModel:
    """A model as the table knows it."""
    provider, _, name = handle.partition("/")
    row = known(provider, name)
    return ChatModel(
        provider_name=provider,
        provider_type=provider,
        name=name,
        endpoint="",
        context_window=window or (row.context_window if row else None),
        context_window_source=ValueSource.TABLE,
        max_output_tokens=row.max_output_tokens if row else None,
        capabilities=row.capabilities if row else UNLISTED,
        display_name=name,
    )


def config(provider: str, base_url: str = "", **options: Any) -> ProviderConfig:
    """A configured provider."""
    return ProviderConfig(
        name=provider,
        type=provider,
        base_url=base_url,
        key_setting=f"{provider.upper()}_API_KEY",
        url_setting=f"{provider.upper()}_BASE_URL",
        **{"is_vendor": False, "api_key": "sk-test", **options},
    )


async def events_of(*events: Event) -> AsyncGenerator[Event, None]:
    for event in events:
        yield event
