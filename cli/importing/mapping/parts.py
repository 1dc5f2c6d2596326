"""The parts of a stored message. No I/O."""

import json
from collections.abc import Iterator
from typing import Any

from cli.importing.values import Json, as_list, as_object, as_text, dump, storable
from loci.agent.v1 import message_pb2
from loci.agent.v1 import transfer_service_pb2 as pb
from services.common.core.base64_text import canonical, decoded_size

_LARGEST_IMAGE = 20 * 1024 * 1024
_KINDS = {"text", "image", "reasoning", "summarized_reasoning", "redacted_reasoning", "tool_call", "tool_return"}
UNREADABLE = "[an image that could not be read]"


def content_parts(content: Any, *, text: str | None = None, thinks: bool = False) -> Iterator[pb.StoredPart]:
    """Yields the parts of a row's content. `text`: its older form; `thinks`: its texts are thoughts, not speech."""
    for part in as_list(content) or ([{"type": "text", "text": text}] if text else []):
        yield from _part(as_object(part), thinks=thinks)


def losses(content: Any) -> list[str]:
    """Returns a sentence for each type of part that is left out, for people."""
    kinds = dict.fromkeys(as_object(part).get("type") for part in as_list(content))
    return [f"a part of type {kind!r} is left out" for kind in kinds if kind not in _KINDS]


def _part(part: Json, *, thinks: bool) -> Iterator[pb.StoredPart]:
    match part.get("type"):
        case "text" if thinks:
            yield from reasoning_parts(part.get("text"), prompted=True)
        case "text":
            yield from text_parts(part.get("text"), signature=as_text(part.get("signature")))
        case "image":
            yield _image(as_object(part.get("source")))
        case "reasoning":
            native = part.get("is_native") is not False
            yield from reasoning_parts(part.get("reasoning"), as_text(part.get("signature")), prompted=not native)
        case "summarized_reasoning":
            pieces = [as_text(as_object(piece).get("text")) for piece in as_list(part.get("summary"))]
            yield from reasoning_parts("\n\n".join(filter(None, pieces)))
        case "redacted_reasoning" if as_text(part.get("data")):
            yield pb.StoredPart(redacted_reasoning=storable(part["data"]))
        case "tool_call":
            yield call_part(as_text(part.get("id")), as_text(part.get("name")), part.get("input"))
        case "tool_return":
            failed = bool(part.get("is_error"))
            yield tool_return_part(as_text(part.get("tool_call_id")), as_text(part.get("content")), failed=failed)


def text_parts(text: Any, *, signature: str = "") -> Iterator[pb.StoredPart]:
    """Yields a text, if there is any."""
    if words := storable(as_text(text)):
        yield pb.StoredPart(text=pb.StoredText(text=words, signature=signature))


def reasoning_parts(text: Any, signature: str = "", *, prompted: bool = False) -> Iterator[pb.StoredPart]:
    """Yields thoughts, if there are any."""
    if words := storable(as_text(text)):
        yield pb.StoredPart(reasoning=pb.StoredReasoning(text=words, signature=signature, prompted=prompted))


def call_part(call_id: str, name: str, arguments: Any, gate: str = "") -> pb.StoredPart:
    """Returns a tool call; its arguments are JSON text, or a value."""
    written = arguments if isinstance(arguments, str) else dump(arguments if arguments is not None else {})
    return pb.StoredPart(call=pb.StoredCall(id=call_id, name=name, arguments=storable(written), gate=gate))


def openai_calls(calls: Any) -> list[Json]:
    """Returns the calls of a row, in the form of OpenAI's API."""
    return [as_object(one) for one in as_list(calls)]


def openai_call_part(call: Json, gate: str = "") -> pb.StoredPart:
    """Returns one of `openai_calls` as a part."""
    function = as_object(call.get("function"))
    return call_part(as_text(call.get("id")), as_text(function.get("name")), function.get("arguments"), gate)


def tool_return_part(
    call_id: str,
    packed: str,
    *,
    failed: bool = False,
    name: str = "",
    stdout: Any = None,
    stderr: Any = None,
) -> pb.StoredPart:
    """Returns a tool's return, out of the old server's JSON `{"status", "message", "time"}` around it."""
    text, status = unpack_return(packed)
    return pb.StoredPart(
        tool_return=message_pb2.ToolReturn(
            tool_call_id=call_id,
            status="error" if failed or status == "Failed" else "success",
            tool_return=storable(text),
            stdout=[storable(str(line)) for line in as_list(stdout)],
            stderr=[storable(str(line)) for line in as_list(stderr)],
            name=name,
        )
    )


def unpack_return(text: str) -> tuple[str, str]:
    """Returns the message and the status in a tool's text; the text itself where it is not packed."""
    packed = json_object(text)
    if "status" not in packed or "message" not in packed:
        return text, ""
    message = packed["message"]
    return message if isinstance(message, str) else dump(message), as_text(packed["status"])


def unpack_user_message(text: str) -> str:
    """Returns a user's text, out of the older JSON `{"type": "user_message", "message", "time"}` around it."""
    packed = json_object(text)
    message = packed.get("message")
    return message if packed.get("type") == "user_message" and isinstance(message, str) else text


def is_alert(text: str) -> bool:
    """Returns whether a text is the old server's own, as summaries are."""
    return json_object(text).get("type") == "system_alert"


def json_object(text: str) -> Json:
    """Returns the JSON object in a text; empty where it is none."""
    if not text.lstrip().startswith("{"):
        return {}
    try:
        return as_object(json.loads(text))
    except (json.JSONDecodeError, RecursionError):
        return {}


def _image(source: Json) -> pb.StoredPart:
    url, data = as_text(source.get("url")), as_text(source.get("data"))
    if not data and url:
        return pb.StoredPart(image=message_pb2.ImageContent(url=url))
    try:
        data = canonical(data)
    except ValueError:
        data = ""
    if not 0 < decoded_size(data) <= _LARGEST_IMAGE:
        return pb.StoredPart(text=pb.StoredText(text=UNREADABLE))
    media_type = as_text(source.get("media_type")) or "image/png"
    return pb.StoredPart(image=message_pb2.ImageContent(data_base64=data, media_type=media_type))
