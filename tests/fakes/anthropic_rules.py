"""Anthropic's refusals of Messages requests, for the fake: fields, histories, and the limits of each model."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tests.fakes import picture_rules, tool_rules

PARAMETERS = frozenset(
    {"model", "messages", "max_tokens", "system", "tools", "tool_choice", "stream", "stop_sequences"}
    | {"metadata", "thinking", "output_config", "cache_control", "service_tier", "container"}
)
SAMPLING = ("temperature", "top_p", "top_k")
BINDING_BETA = "thinking-binding-controls-2026-08-01"
SIGNATURE = "sig-of-the-fake"
# The types of thinking that a model refuses with 400 (docs: thinking-troubleshooting).
REFUSED_THINKING: Mapping[str, tuple[str, ...]] = {
    "claude-fable-5-1": ("enabled", "disabled", "between_tools"),
    "claude-opus-5-5": ("enabled", "disabled", "between_tools"),
    "claude-sonnet-5-5": ("enabled", "disabled"),
    "claude-haiku-5-5": ("enabled",),
    "claude-opus-5": ("enabled",),
    "claude-sonnet-5": ("enabled",),
    "claude-opus-4-8": ("enabled",),
    "claude-opus-4-7": ("enabled",),
    "claude-opus-4-5": ("adaptive",),
    "claude-sonnet-4-5": ("adaptive",),
    "claude-haiku-4-5": ("adaptive",),
}
NEVER_FORCED = frozenset({"claude-fable-5-1", "claude-opus-5-5", "claude-sonnet-5-5"})
BINDING = NEVER_FORCED | {"claude-haiku-5-5"}
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_NO_KEYWORDS = re.compile(r"minimum|maximum|multipleOf|(min|max)Length|maxItems|uniqueItems|oneOf")


def blocks_of(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A message's content as blocks."""
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)


def cacheable(body: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The blocks that may be marked for the cache."""
    system = body.get("system")
    yield from body.get("tools", ())
    yield from system if isinstance(system, list) else ()
    for message in body["messages"]:
        yield from blocks_of(message)


def refusal(body: Any, version: str, betas: str = BINDING_BETA, sampling: bool = False) -> str | None:
    """Returns the vendor's refusal of a Messages request, or None. `sampling`: it takes sampling parameters."""
    if not isinstance(body, dict):
        return "The request body is not valid JSON"
    for name in ("model", "messages", "max_tokens"):
        if name not in body:
            return f"{name}: Field required"
    allowed = PARAMETERS.union(SAMPLING if sampling or version < "2026-10-21" else ())
    if unknown := set(body) - allowed:
        return f"{min(unknown)}: Extra inputs are not permitted"
    if not body["messages"]:
        return "messages: at least one message is required"
    if sum(1 for block in cacheable(body) if block.get("cache_control")) > 4:
        return "A maximum of 4 blocks with cache_control may be provided."
    return (
        _thinking_refusal(body, betas)
        or tool_rules.anthropic_refusal([tool for tool in body.get("tools", ()) if "input_schema" in tool])
        or _schemas_refusal(body)
        or _history_refusal(body["messages"])
    )


def _thinking_refusal(body: Mapping[str, Any], betas: str) -> str | None:
    thinking, model = body.get("thinking") or {}, re.sub(r"-20\d{6}$", "", body["model"])
    kind = thinking.get("type")
    forced = (body.get("tool_choice") or {}).get("type") in ("any", "tool")
    if forced and model in NEVER_FORCED:
        return 'tool_choice: type "tool" and "any" are not supported for this model.'
    if forced and kind in ("enabled", "adaptive"):
        return "Thinking may not be enabled when tool_choice forces tool use."
    if kind in REFUSED_THINKING.get(model, ()):
        return f'"thinking.type.{kind}" is not supported for this model.'
    if "block_binding" in thinking and BINDING_BETA not in betas:
        return "thinking.adaptive.block_binding: Extra inputs are not permitted"
    if kind == "enabled":
        if not 1024 <= thinking.get("budget_tokens", 0) < body["max_tokens"]:
            return "`max_tokens` must be greater than `thinking.budget_tokens`."
        if _turn_without_thought(body["messages"]):
            return "Expected `thinking` or `redacted_thinking`, but found `tool_use`. When `thinking` is enabled, " + (
                "a final `assistant` message must start with a thinking block."
            )
    return _signatures_refusal(body, model, bool(thinking.get("block_binding")))


def _turn_without_thought(messages: Sequence[Mapping[str, Any]]) -> bool:
    if not any(block["type"] == "tool_result" for block in blocks_of(messages[-1])):
        return False
    first = ""
    for message in reversed(messages):
        kinds = [block["type"] for block in blocks_of(message)]
        if message["role"] == "user" and "tool_result" not in kinds:
            break
        if message["role"] == "assistant":
            first = kinds[0]
    return first not in ("thinking", "redacted_thinking")


def _signatures_refusal(body: Mapping[str, Any], model: str, drops: bool) -> str | None:
    bound = signature_for(body) if model in BINDING and not drops else None
    for index, message in enumerate(body["messages"]):
        for position, block in enumerate(blocks_of(message)):
            if block["type"] != "thinking":
                continue
            place = f"messages.{index}.content.{position}: Invalid `signature` in `thinking` block"
            if not block.get("signature", "").startswith(("sig", SIGNATURE)):
                return place
            if bound is not None and "@" in block["signature"] and block["signature"] != bound:
                return f"{place}. The block is bound to a different conversation."
    return None


def signature_for(body: Mapping[str, Any], signature: str = SIGNATURE) -> str:
    """The signature of a thought in the reply to this request; a binding model's tells what it was thought behind."""
    if body["model"] not in BINDING:
        return signature
    stripped = [
        {name: value for name, value in block.items() if name != "cache_control"}
        for block in [*(body.get("tools") or ()), *(body.get("system") or ())]
    ]
    return f"{signature}@{hash(repr(stripped)):x}"


def _schemas_refusal(body: Mapping[str, Any]) -> str | None:
    schemas = [tool["input_schema"] for tool in body.get("tools", ()) if tool.get("strict")]
    if wanted := (body.get("output_config") or {}).get("format"):
        schemas.append(wanted["schema"])
    for schema in schemas:
        if complaint := _schema_refusal(schema):
            return complaint
    return None


def _schema_refusal(schema: Any) -> str | None:
    if isinstance(schema, list):
        return next(filter(None, map(_schema_refusal, schema)), None)
    if not isinstance(schema, dict):
        return None
    if schema.get("type") == "object" and schema.get("additionalProperties") is not False:
        return "output_config.format.schema: For 'object' type, 'additionalProperties' must be explicitly set to false"
    inner = {name: value for name, value in schema.items() if name not in ("properties", "enum", "const", "default")}
    if unknown := [name for name in inner if _NO_KEYWORDS.fullmatch(name)]:
        return f"output_config.format.schema: For '{schema.get('type')}' type, property '{unknown[0]}' is not supported"
    children = [*(schema.get("properties") or {}).values(), *inner.values()]
    return next(filter(None, map(_schema_refusal, children)), None)


def _block_refusal(block: Mapping[str, Any]) -> str | None:
    """Returns what is wrong with a block, or with what is in it."""
    match block["type"]:
        case "image" if block["source"]["type"] == "base64":
            source = block["source"]
            if complaint := picture_rules.refusal(source.get("media_type", ""), source.get("data", "")):
                return f"image.source.base64.{complaint}"
        case "tool_use":
            if not _NAME.fullmatch(block["name"]):
                return f"tool_use.name: String should match pattern '{_NAME.pattern}'"
            if not isinstance(block["input"], dict):
                return "tool_use.input: Input should be a valid dictionary"
        case "tool_result" if isinstance(block.get("content"), list):
            for position, inner in enumerate(block["content"]):
                if complaint := _block_refusal(inner):
                    return f"tool_result.content.{position}.{complaint}"
    return None


def _history_refusal(messages: list[dict[str, Any]]) -> str | None:
    if messages[0]["role"] != "user":
        return 'messages: first message must use the "user" role'
    uses: set[str] = set()
    seen: set[str] = set()
    for index, message in enumerate(messages):
        if message["role"] not in ("user", "assistant"):
            return f"messages.{index}.role: Input should be 'user' or 'assistant'"
        blocks = blocks_of(message)
        if any(block["type"] == "text" and not block["text"].strip() for block in blocks):
            return f"messages.{index}: text content blocks must be non-empty"
        if not blocks and index < len(messages) - 1:
            return f"messages.{index}: all messages must have non-empty content except for the optional final one"
        for position, block in enumerate(blocks):
            if complaint := _block_refusal(block):
                return f"messages.{index}.content.{position}.{complaint}"
        results = {block["tool_use_id"] for block in blocks if block["type"] == "tool_result"}
        if uses - results:
            return f"messages.{index}: `tool_use` ids without `tool_result` blocks: {sorted(uses - results)}"
        if results - uses:
            return f"messages.{index}: unexpected `tool_use_id` in results: {sorted(results - uses)}"
        if results and any(block["type"] != "tool_result" for block in blocks[: len(results)]):
            return f"messages.{index}: `tool_result` blocks must come first"
        uses = {block["id"] for block in blocks if block["type"] == "tool_use"}
        if uses & seen or len(uses) < sum(block["type"] == "tool_use" for block in blocks):
            return f"messages.{index}: `tool_use` ids must be unique"
        seen |= uses
        if wrong := [id for id in uses if not re.fullmatch(r"[a-zA-Z0-9_-]+", id)]:
            return f"messages.{index}: tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$': {wrong[0]}"
    return f"`tool_use` ids without `tool_result`: {sorted(uses)}" if uses else None
