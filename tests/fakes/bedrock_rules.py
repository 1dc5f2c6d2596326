"""Bedrock's refusals of Converse requests, for the fake: shapes (by AWS's own description), histories, and limits of a
model takes.
"""

import base64
from collections.abc import Mapping
from functools import cache
from typing import Any

import botocore.session
from botocore.validate import ParamValidator

from tests.fakes import anthropic_rules, picture_rules, tool_rules
from tests.fakes.script import Reply

# Claude's models by their ids here.
CLAUDES = {
    "anthropic.claude-haiku-4-5-20251001-v1:0": "claude-haiku-4-5",
    "anthropic.claude-opus-5-5": "claude-opus-5-5",
    "anthropic.claude-sonnet-5": "claude-sonnet-5",
}
_FORCED = _MARKED = ("anthropic.", "amazon.nova")


@cache
def _shape(operation: str) -> Any:
    service = botocore.session.get_session().get_service_model("bedrock-runtime")
    return service.operation_model(operation).input_shape


def shape_refusal(operation: str, model: str, body: Mapping[str, Any]) -> str | None:
    """Returns the members that AWS's own description of the operation does not know or misses, or None."""
    report = ParamValidator().validate({"modelId": model, **body}, _shape(operation))
    return str(report.generate_report()) if report.has_errors() else None


def refusal(model: str, body: Mapping[str, Any]) -> str | None:
    """Returns the refusal of a chat with `model`, an id without region; None for a good one."""
    messages = body.get("messages") or []
    return _turns_refusal(messages, body) or _tools_refusal(model, body) or _model_refusal(model, body, messages)


def _tools_refusal(model: str, body: Mapping[str, Any]) -> str | None:
    specs = [tool["toolSpec"] for tool in (body.get("toolConfig") or {}).get("tools", ()) if "toolSpec" in tool]
    return tool_rules.bedrock_refusal(specs, is_claude=model.startswith("anthropic."))


def _turns_refusal(messages: list[dict[str, Any]], body: Mapping[str, Any]) -> str | None:
    if not messages or messages[0]["role"] != "user":
        return "A conversation must start with a user message. Try again with a conversation that starts with one."
    uses: set[str] = set()
    for index, message in enumerate(messages):
        if index and messages[index - 1]["role"] == message["role"]:
            return f"messages: roles must alternate between user and assistant, at messages.{index}."
        if not message["content"]:
            return f"The content field in the Message object at messages.{index} is empty. Add a ContentBlock object."
        for position, block in enumerate(message["content"]):
            if image := block.get("image"):
                found = picture_rules.type_of(image["source"]["bytes"])
                if found != f"image/{image['format']}":
                    return "The model returned the following errors: Could not process image"
            if "text" in block and not block["text"].strip():
                place = f"messages.{index}.content.{position}"
                return f"The text field in the ContentBlock object at {place} is blank. Add text to the text field."
        results = {block["toolResult"]["toolUseId"] for block in message["content"] if "toolResult" in block}
        if uses - results:
            return f"Expected toolResult blocks at messages.{index}.content for the following Ids: {sorted(uses)}"
        if results - uses:
            return f"The number of toolResult blocks at messages.{index}.content exceeds the number of toolUse blocks."
        uses = {block["toolUse"]["toolUseId"] for block in message["content"] if "toolUse" in block}
        if (uses or results) and not (body.get("toolConfig") or {}).get("tools"):
            return "The toolConfig field must be defined when using toolUse and toolResult content blocks."
    return f"Expected toolResult blocks for the following Ids: {sorted(uses)}" if uses else None


def _model_refusal(model: str, body: Mapping[str, Any], messages: list[dict[str, Any]]) -> str | None:
    config = body.get("toolConfig") or {}
    choice = config.get("toolChoice") or {}
    if choice.keys() & {"any", "tool"} and not model.startswith(_FORCED):
        return f"This model doesn't support the toolConfig.toolChoice.{min(choice)} field. Remove it and try again."
    blocks = [block for message in messages for block in message["content"]]
    tools = config.get("tools", ())
    marks = [block for block in [*blocks, *(body.get("system") or ()), *tools] if "cachePoint" in block]
    if marks and not model.startswith(_MARKED):
        return "You invoked an unsupported model or your request did not allow prompt caching."
    if len(marks) > 4:
        return "You can set at most 4 cache points."
    if model.startswith("amazon.nova") and any("cachePoint" in tool for tool in tools):
        return "This model doesn't support cachePoint in tools."
    if not model.startswith(("anthropic.", "amazon.nova")) and any("image" in block for block in blocks):
        return "This model doesn't support the image content block that you provided."
    return _claude_refusal(model, body, choice, blocks) if model in CLAUDES else None


def _claude_refusal(
    model: str, body: Mapping[str, Any], choice: Mapping[str, Any], blocks: list[dict[str, Any]]
) -> str | None:
    """Its own refusals, as Bedrock passes them on."""
    more = body.get("additionalModelRequestFields") or {}
    asked = {
        "model": CLAUDES[model],
        "messages": [{"role": "user", "content": "x"}],
        "max_tokens": (body.get("inferenceConfig") or {}).get("maxTokens", 64_000),
        "tool_choice": {"type": next(iter(choice), "auto")},
        **{field: more[field] for field in ("thinking",) if field in more},
    }
    complaint = anthropic_rules.refusal(asked, "2026-10-21", ",".join(more.get("anthropic_beta", ())))
    for block in blocks:
        thought = (block.get("reasoningContent") or {}).get("reasoningText")
        if thought and not thought.get("signature", "").startswith("sig"):
            complaint = "messages: Invalid `signature` in `thinking` block"
    return f"The model returned the following errors: {complaint}" if complaint else None


def redacted(reply: Reply) -> str:
    """Encrypted thoughts as this wire has them."""
    return base64.b64encode(reply.redacted.encode()).decode()
