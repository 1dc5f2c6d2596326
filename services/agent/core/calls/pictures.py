"""Pictures in what a server tool returns. Pure.

A tool returns one as {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "..."}}, or
several in a list with {"type": "text", "text": "..."}; as data or as the JSON text of it. A picture that no provider
would take becomes words: in the history it would have every later request refused.
"""

from base64 import b64decode
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from services.agent.core.messages import Image, Part, Text
from services.common.core.base64_text import canonical

MOST_PICTURES = 20
# Of all pictures of a return together, before base64.
MOST_PICTURE_BYTES = 20 * 1024 * 1024
_BEGINNINGS = {
    "image/png": (b"\x89PNG\r\n\x1a\n",),
    "image/jpeg": (b"\xff\xd8\xff",),
    "image/gif": (b"GIF87a", b"GIF89a"),
    "image/webp": (b"RIFF",),
}


def split_pictures(result: str) -> tuple[str, tuple[Image, ...]] | None:
    """Returns the texts of a result (JSON), joined by newlines, and its pictures; None where it has no pictures."""
    if "image" not in result:
        # Most results: they are not read for nothing.
        return None
    items = _items(_value(result))
    if not any(item["type"] == "image" for item in items):
        return None
    parts: list[Part] = []
    room = MOST_PICTURE_BYTES
    for item in items:
        part = _part(item, room if sum(isinstance(each, Image) for each in parts) < MOST_PICTURES else 0)
        room -= _bytes(part.data) if isinstance(part, Image) else 0
        parts.append(part)
    texts = (part.text for part in parts if isinstance(part, Text))
    return "\n".join(filter(None, texts)), tuple(part for part in parts if isinstance(part, Image))


def _value(result: str) -> Any:
    try:
        value = orjson.loads(result)
        return orjson.loads(value) if isinstance(value, str) else value
    except orjson.JSONDecodeError:
        return None


def _items(value: Any) -> Sequence[Mapping[str, Any]]:
    """Returns the parts that a value is; none where it is anything else."""
    items = value if isinstance(value, list) else [value]
    return items if all(map(_is_item, items)) else []


def _is_item(item: Any) -> bool:
    if not isinstance(item, dict):
        return False
    of_text = item.get("type") == "text" and isinstance(item.get("text"), str)
    return of_text or (item.get("type") == "image" and isinstance(item.get("source"), dict))


def _part(item: Mapping[str, Any], room: int) -> Part:
    if item["type"] == "text":
        return Text(item["text"])
    source = item["source"]
    data = source.get("data")
    if source.get("type") != "base64" or not isinstance(data, str):
        return Text(f"[a picture cannot be shown: its source must be base64 of {', '.join(_BEGINNINGS)}]")
    if _bytes(data) > room:
        return Text(
            f"[a picture is too much: a tool may return {MOST_PICTURES}, of {MOST_PICTURE_BYTES:,} bytes together]"
        )
    try:
        data = canonical(data)
    except ValueError:
        return Text("[a picture cannot be shown: its data is not base64]")
    media_type = _type_of(b64decode(data[:16]))
    if media_type is None:
        return Text(f"[a picture cannot be shown: its data is none of {', '.join(_BEGINNINGS)}]")
    return Image(data=data, media_type=media_type)


def _type_of(begins: bytes) -> str | None:
    """Returns the type that the bytes have, whatever their label says; None for others."""
    found = next((name for name, beginnings in _BEGINNINGS.items() if begins.startswith(beginnings)), None)
    return None if found == "image/webp" and begins[8:] != b"WEBP" else found


def _bytes(data: str) -> int:
    return len(data) * 3 // 4
