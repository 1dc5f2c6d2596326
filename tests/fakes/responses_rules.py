"""The refusals of OpenAI's Responses, and a script's view of its requests."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tests.fakes import picture_rules, tool_rules
from tests.fakes.script import RequestView

KNOWN = frozenset(
    {"model", "input", "instructions", "store", "stream", "tools", "tool_choice", "parallel_tool_calls", "text"}
    | {"max_output_tokens", "prompt_cache_key", "reasoning", "include", "temperature", "top_p", "top_logprobs"}
    | {"service_tier", "previous_response_id", "metadata", "truncation", "stream_options", "background"}
)
INCLUDES = frozenset({"reasoning.encrypted_content", "message.output_text.logprobs"})
# What counts tokens takes less.
COUNTED = KNOWN - {"store", "stream", "max_output_tokens", "prompt_cache_key", "include", "temperature", "top_p"}
FOREIGN = "foreign"
_REASONING = re.compile(r"^(o\d|gpt-[5-9])")
_O_MODEL = re.compile(r"^o\d")
_TOOL_NAME = re.compile(r"^[a-zA-Z0-9_-]{1,64}$")
_CONTENT = {"user": {"input_text", "input_image"}, "assistant": {"output_text", "refusal"}}

# Message, code, parameter.
Complaint = tuple[str, str | None, str | None]


def items_of(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The input as items; messages may leave out their type, and a text is the user's."""
    given = body.get("input") or []
    if isinstance(given, str):
        return [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": given}]}]
    return [{"type": "message", **item} for item in given]


def request_view(body: Mapping[str, Any], items: Sequence[Mapping[str, Any]], *, stream: bool) -> RequestView:
    """Returns a script's view; `items` are all of the conversation."""
    step, question, last_kind = 0, "", ""
    for item in reversed(items):
        if item["type"] == "message" and item.get("role") == "user":
            question = text_of(item["content"])
            break
        step += item["type"] == "function_call_output" and last_kind != "function_call_output"
        last_kind = item["type"]
    last = items[-1] if items else {}
    answered = last.get("type") == "function_call_output"
    return RequestView(
        model=body["model"],
        last_role="tool" if answered else last.get("role", ""),
        last_text=text_of(last.get("output") if answered else last.get("content")),
        step=step,
        stream=stream,
        tools=tuple(tool["name"] for tool in body.get("tools") or ()),
        body=body,
        question=question,
    )


def text_of(content: Any) -> str:
    """The text in content, a string or a list of parts."""
    if isinstance(content, str) or content is None:
        return content or ""
    return "".join(part.get("text", "") for part in content)


def refusal(body: Any, items: Sequence[Mapping[str, Any]], known: frozenset[str] = KNOWN) -> Complaint | None:
    """Returns the vendor's refusal, or None; `items` are those of the whole conversation."""
    complaints = _complaints(body, items, known)
    return next(complaints, None)


def _complaints(
    body: Mapping[str, Any], items: Sequence[Mapping[str, Any]], known: frozenset[str]
) -> Iterator[Complaint]:
    for name in body.keys() - known:
        yield f"Unknown parameter: '{name}'.", "unknown_parameter", name
    if not items:
        yield "One of 'input' or 'previous_response_id' must be provided.", "missing_required_parameter", "input"
    yield from _of_items(items)
    yield from _of_tools(body)
    yield from _of_model(body)
    if (most := body.get("max_output_tokens")) is not None and most < 16:
        yield (
            "Invalid 'max_output_tokens': integer below minimum value.",
            "integer_below_min_value",
            "max_output_tokens",
        )
    if len(body.get("prompt_cache_key") or "") > 64:
        yield "Invalid 'prompt_cache_key': string too long.", "string_above_max_length", "prompt_cache_key"
    for name in set(body.get("include") or ()) - INCLUDES:
        yield f"Invalid value: '{name}'.", "invalid_value", "include"
    format = (body.get("text") or {}).get("format") or {"type": "text"}
    if format["type"] not in ("text", "json_object", "json_schema"):
        yield f"Invalid value: '{format['type']}'.", "invalid_value", "text.format.type"
    if format["type"] == "json_schema" and not {"name", "schema"} <= format.keys():
        yield "Missing required parameter: 'text.format.name'.", "missing_required_parameter", "text.format.name"


def _of_model(body: Mapping[str, Any]) -> Iterator[Complaint]:
    name, include = body["model"], body.get("include") or ()
    if _REASONING.match(name):
        for field in ("temperature", "top_p", "top_logprobs"):
            if field in body:
                yield f"Unsupported parameter: '{field}' is not supported with this model.", None, field
        if "message.output_text.logprobs" in include:
            yield "logprobs are not supported with reasoning models.", None, "include"
        if _O_MODEL.match(name) and "parallel_tool_calls" in body:
            yield "Unsupported parameter: 'parallel_tool_calls' is not supported with this model.", None, "parallel"
    elif "reasoning" in body:
        yield "Unsupported parameter: 'reasoning.effort' is not supported with this model.", None, "reasoning.effort"
    elif "reasoning.encrypted_content" in include:
        yield "Encrypted content is not supported with this model.", None, "include"


def _of_tools(body: Mapping[str, Any]) -> Iterator[Complaint]:
    tools = body.get("tools") or ()
    if complaint := tool_rules.openai_refusal(tools, inside=""):
        yield complaint
    for place, tool in enumerate(tools):
        at = f"tools[{place}]"
        if tool.get("type") != "function" or not _TOOL_NAME.match(tool.get("name") or ""):
            yield f"Missing required parameter: '{at}.name'.", "missing_required_parameter", at
        schema = tool.get("parameters") or {}
        # Without the word a tool is strict, and its schema is made so; with it the schema has to be.
        if tool.get("strict") is True and (
            schema.get("additionalProperties") is not False
            or set(schema.get("required") or ()) != (schema.get("properties") or {}).keys()
        ):
            text = f"Invalid schema for function '{tool['name']}': 'additionalProperties' is required to be false."
            yield text, "invalid_function_parameters", f"{at}.parameters"
    choice = body.get("tool_choice", "auto")
    named = isinstance(choice, dict) and choice.get("type") == "function" and "name" in choice
    if choice not in ("auto", "required", "none") and not named:
        yield "Invalid value for 'tool_choice'.", "invalid_value", "tool_choice"


def _of_items(items: Sequence[Mapping[str, Any]]) -> Iterator[Complaint]:
    called, answered = set(), set()
    for place, item in enumerate(items):
        at, kind = f"input[{place}]", item.get("type")
        match kind:
            case "message":
                yield from _of_message(item, at)
            case "function_call":
                if not isinstance(item.get("arguments"), str) or not 0 < len(item.get("call_id") or "") <= 64:
                    yield f"Invalid '{at}.call_id': expected a string with length 1 to 64.", "invalid_value", at
                if not _TOOL_NAME.match(item.get("name") or ""):
                    yield f"Invalid '{at}.name': string does not match pattern.", "invalid_value", f"{at}.name"
                called.add(item["call_id"])
            case "function_call_output":
                answered.add(item.get("call_id"))
                if item.get("call_id") not in called:
                    yield (
                        f"No tool call found for function call output with call_id {item.get('call_id')}.",
                        None,
                        "input",
                    )
            case "reasoning":
                yield from _of_reasoning(items, place, at)
            case _:
                yield f"Invalid value: '{kind}'.", "invalid_value", at
    for id in called - answered:
        yield f"No tool output found for function call {id}.", None, "input"


def _of_message(item: Mapping[str, Any], at: str) -> Iterator[Complaint]:
    role, content = item.get("role"), item.get("content")
    if role not in ("user", "assistant", "system", "developer"):
        yield f"Invalid value: '{role}'.", "invalid_value", f"{at}.role"
    if isinstance(content, str):
        return
    allowed = _CONTENT.get(str(role), {"input_text"})
    for part in content or ():
        if part.get("type") not in allowed:
            yield f"Invalid value: '{part.get('type')}'.", "invalid_value", f"{at}.content"
        if part.get("type") == "input_image" and (
            complaint := picture_rules.address_refusal(str(part.get("image_url")))
        ):
            yield complaint, "invalid_image_url", f"{at}.content"


def _of_reasoning(items: Sequence[Mapping[str, Any]], place: int, at: str) -> Iterator[Complaint]:
    item = items[place]
    id, encrypted = item.get("id"), item.get("encrypted_content")
    if not id or not isinstance(item.get("summary"), list):
        yield f"Missing required parameter: '{at}.summary'.", "missing_required_parameter", at
    if not encrypted:
        yield f"Item with id '{id}' not found. Items are not persisted when `store` is set to false.", None, "input"
    elif encrypted.startswith(FOREIGN):
        yield f"The encrypted content {encrypted[:9]} could not be verified.", "invalid_encrypted_content", None
    following = items[place + 1 :]
    while following and following[0]["type"] == "reasoning":
        following = following[1:]
    if not following or following[0].get("role", "assistant") != "assistant":
        yield f"Item '{id}' of type 'reasoning' was provided without its required following item.", None, "input"
