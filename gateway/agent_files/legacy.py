"""The legacy form of an agent file (servers 0.6 and 0.7), made into the current one. Pure.

One agent at the top; blocks and tools inline, without ids; the whole history, with the window as indices into it or as
a flag on each message.
"""

from typing import Any

import orjson

from gateway.agent_files.checks import invalid_file

Json = dict[str, Any]
_SAME = (
    "name",
    "description",
    "system",
    "agent_type",
    "timezone",
    "llm_config",
    "embedding_config",
    "message_buffer_autoclear",
    "response_format",
)
# Of users' texts in those days: the rest of the object repeats what the message says of itself.
_SPOKEN = "user_message"


def is_legacy(document: Json) -> bool:
    """Returns whether it is of that form."""
    return "agents" not in document and "core_memory" in document


def to_current(document: Json) -> Json:
    """Returns the same agent. Raises InvalidArgument (AGENT_FILE_INVALID)."""
    blocks = [_block(each, place) for place, each in enumerate(_objects(document, "core_memory"))]
    tools = [each | {"id": f"tool-{place}"} for place, each in enumerate(_objects(document, "tools"))]
    messages = [_message(each, place) for place, each in enumerate(_objects(document, "messages"))]
    _objects(document, "tool_rules")
    variables = _objects(document, "tool_exec_environment_variables")
    agent = {name: document.get(name) for name in _SAME} | {
        "id": "agent-0",
        "metadata": _either(document, "metadata_", "metadata"),
        "block_ids": [each["id"] for each in blocks],
        "tool_ids": [each["id"] for each in tools],
        "tool_rules": document.get("tool_rules"),
        "tags": [_tag(each) for each in _list(document, "tags")],
        "secrets": {str(each.get("key")): "" for each in variables},
        "messages": messages,
        "in_context_message_ids": [f"message-{place}" for place in _context(document)],
        # It lists all its tools.
        "include_base_tools": False,
    }
    return {
        "agents": [agent],
        "blocks": blocks,
        "tools": tools,
        "created_at": document.get("created_at"),
    }


def _context(document: Json) -> list[int]:
    """Places of the messages in context, in its order."""
    count = len(document.get("messages") or ())
    places = document.get("in_context_message_indices")
    if places is None:
        return [place for place, each in enumerate(document.get("messages") or ()) if each.get("in_context")]
    if not isinstance(places, list):
        raise invalid_file("in_context_message_indices must be a list of places in messages")
    for place in places:
        if not isinstance(place, int) or isinstance(place, bool) or not 0 <= place < count:
            raise invalid_file(f"in_context_message_indices names {str(place)[:40]}; there are {count} messages")
    return list(dict.fromkeys(places))


def _block(block: Json, place: int) -> Json:
    return block | {"id": f"block-{place}", "metadata": _either(block, "metadata_", "metadata")}


def _message(message: Json, place: int) -> Json:
    current = message | {"id": f"message-{place}"}
    if message.get("role") == "user":
        current["content"] = _spoken(message.get("content"))
    return current


def _spoken(content: Any) -> Any:
    """Returns the user's text, out of the object that it was packed in; what is not packed so stays as it is."""
    match content:
        case [{"type": "text", "text": str(text)} as part]:
            try:
                packed = orjson.loads(text)
            except ValueError:
                return content
            match packed:
                case {"type": kind, "message": str(said)} if kind == _SPOKEN:
                    return [part | {"text": said}]
    return content


def _tag(tag: Any) -> Any:
    return tag.get("tag") if isinstance(tag, dict) else tag


def _either(holder: Json, *names: str) -> Any:
    return next((holder[name] for name in names if holder.get(name) is not None), None)


def _objects(document: Json, name: str) -> list[Json]:
    items = _list(document, name)
    if not all(isinstance(each, dict) for each in items):
        raise invalid_file(f"{name} must be a list of objects")
    return items


def _list(document: Json, name: str) -> list[Any]:
    value = document.get(name) or []
    if not isinstance(value, list):
        raise invalid_file(f"{name} must be a list")
    return value
