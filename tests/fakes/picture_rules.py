"""The vendors' rules on pictures, for their fakes: four types, and bytes that are what the label says."""

from base64 import b64decode
from binascii import Error

TYPES = ("image/jpeg", "image/png", "image/gif", "image/webp")
_BEGINNINGS = {b"\x89PNG": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif", b"RIFF": "image/webp"}


def type_of(data: str) -> str:
    """Returns the type of a picture by its bytes; "" where they are none that anybody knows."""
    try:
        begins = b64decode(data[:24], validate=True)
    except (Error, ValueError):
        return ""
    return next((kind for beginning, kind in _BEGINNINGS.items() if begins.startswith(beginning)), "")


def refusal(media_type: str, data: str) -> str | None:
    """Returns what is wrong with a picture by value, as Anthropic says it; None for a good one."""
    if media_type not in TYPES:
        return f"media_type: Input should be {', '.join(map(repr, TYPES[:-1]))} or {TYPES[-1]!r}"
    found = type_of(data)
    if not found:
        return "Could not process image"
    if found != media_type:
        return f"The image was specified using the {media_type} media type, but the image appears to be a {found} image"
    return None


def address_refusal(url: str) -> str | None:
    """Returns what is wrong with a picture's address, which may hold it, as OpenAI says it; None for a good one."""
    if url.startswith(("https://", "http://")):
        return None
    head, comma, data = url.partition(",")
    if not comma or not head.startswith("data:") or not head.endswith(";base64"):
        return "Invalid 'image_url'. Expected a valid URL or a base64-encoded data URL."
    media_type = head.removeprefix("data:").removesuffix(";base64")
    if media_type not in TYPES or type_of(data) != media_type:
        return (
            "You uploaded an unsupported image. Please make sure your image has of one the following formats: "
            "['png', 'jpeg', 'gif', 'webp']."
        )
    return None
