"""From what a tool of a server answered to the result of a call. Pure.

Texts are joined; pictures are given as the agent's pictures are (see the agent service's `pictures`); what else there
may be (sounds, links, embedded files) is told in words, unless it is text.
"""

import json
from collections.abc import Sequence
from typing import Any

from services.tool_runner.core.job import ExitReason, Result, ToolError
from services.tool_runner.core.storable import storable

_MOST_ERROR = 10_000
_MOST_QUESTION = 1_000
_MOST_ITEMS = 1_000


def result_of(answer: dict[str, Any]) -> Result:
    """Returns what a call came to. An answer that says `isError` is one that raised."""
    if asked := asked_instead(answer):
        return failed_result("McpToolError", asked)
    listed = answer.get("content", [])
    items = [_item(item) for item in listed[:_MOST_ITEMS]] if isinstance(listed, list) else [_text(listed)]
    if answer.get("isError") is True:
        return failed_result(
            "McpToolError", _join(items) or _dump(answer.get("structuredContent")) or "it said no more"
        )
    structured = answer.get("structuredContent")
    value = _value(items) if structured is None or _has_pictures(items) else _unwrap(structured)
    return Result(reason=ExitReason.OK, result=json.dumps(storable(value), ensure_ascii=False))


def asked_instead(answer: dict[str, Any]) -> str:
    """Returns what is said of an answer that asks for input; "" for a result."""
    if answer.get("resultType", "complete") == "complete":
        return ""
    return unanswerable(_questions(answer.get("inputRequests")))


def unanswerable(questions: str) -> str:
    """Returns what is said of an elicitation, to the server and so to the model."""
    asked = f" ({questions[:_MOST_QUESTION]})" if questions else ""
    sentence = f"Elicitation not supported: the server asks the user{asked}, and nobody is asked while a tool runs"
    return f"{sentence}. Ask the user, and call again with the answer among the arguments, if the tool takes it"


def _questions(requests: Any) -> str:
    """Returns the messages of the requests that a server answered instead of a result."""
    listed = requests.values() if isinstance(requests, dict) else ()
    params = (request["params"] for request in listed if isinstance(request, dict) and "params" in request)
    return "; ".join(str(one["message"]) for one in params if isinstance(one, dict) and "message" in one)


def value_of_contents(contents: Sequence[Any]) -> Any:
    """Returns the value of a resource that was read: its text, or a list with its pictures."""
    return _value([_item({"type": "resource", "resource": content}) for content in contents[:_MOST_ITEMS]])


def _value(items: Sequence[dict[str, Any]]) -> Any:
    if _has_pictures(items):
        return items if len(items) > 1 else items[0]
    return _join(items)


def _has_pictures(items: Sequence[dict[str, Any]]) -> bool:
    return any(item["type"] == "image" for item in items)


def _unwrap(value: Any) -> Any:
    # Servers wrap what is no object in one: the Python SDK's way.
    return value["result"] if isinstance(value, dict) and value.keys() == {"result"} else value


def failed_result(kind: str, message: str) -> Result:
    """Returns the result of a call that ended badly there."""
    text = storable(message) if len(message) <= _MOST_ERROR else storable(message[:_MOST_ERROR]) + "..."
    return Result(reason=ExitReason.RAISED, error=ToolError(kind, text))


def _item(item: Any) -> dict[str, Any]:
    match item:
        case {"type": "text", "text": str(text)}:
            return _text(text)
        case {"type": "image", "data": str(data), "mimeType": str(media_type)}:
            return {"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}}
        case {"type": "audio", "mimeType": str(media_type)}:
            return _text(f"[a sound of type {media_type[:100]}, which cannot be shown]")
        case {"type": "resource", "resource": {"text": str(text)}}:
            return _text(text)
        case {"type": "resource", "resource": {"blob": str(blob), **rest}}:
            return _blob(blob, rest)
        case {"type": "resource_link", "uri": str(uri), **rest}:
            return _text(f"[{rest.get('title') or rest.get('name') or 'a resource'}]({uri})")
    return _text(_dump(item))


def _blob(blob: str, resource: dict[Any, Any]) -> dict[str, Any]:
    media_type = resource.get("mimeType")
    if isinstance(media_type, str) and media_type.startswith("image/"):
        return {"type": "image", "source": {"type": "base64", "media_type": media_type, "data": blob}}
    return _text(f"[{resource.get('uri', 'a file')}: {len(blob) * 3 // 4} bytes of {media_type or 'an unknown type'}]")


def _text(text: Any) -> dict[str, Any]:
    return {"type": "text", "text": text if isinstance(text, str) else _dump(text)}


def _join(items: Sequence[dict[str, Any]]) -> str:
    return "\n".join(item["text"] for item in items if item["type"] == "text")


def _dump(value: Any) -> str:
    return "" if value is None else json.dumps(value, ensure_ascii=False)
