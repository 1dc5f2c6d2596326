"""Parts of messages in a file -> stored parts, and back. Pure."""

from collections.abc import Iterable, Iterator
from typing import Any

import orjson

from gateway.agent_files.checks import invalid_file
from gateway.resources.messages.content import image_to_rest
from loci.agent.v1 import message_pb2
from loci.agent.v1.transfer_service_pb2 import StoredCall, StoredPart, StoredReasoning, StoredText
from services.common.core.base64_text import canonical

Json = dict[str, Any]
# What servers pack the text of a return into.
_PACKED = frozenset(("status", "message", "time"))


def parts_of(content: str | list[Json] | None, where: str, *, thinks_in_text: bool = False) -> Iterator[StoredPart]:
    """Yields what a message says, without what says nothing. `thinks_in_text`: its text is a thought beside the calls
    that follow, as agents of the older types have it. Raises InvalidArgument (AGENT_FILE_INVALID).
    """
    for part in [{"type": "text", "text": content}] if isinstance(content, str) else content or ():
        match part:
            case {"type": "text", "text": str(text)}:
                signature = _text(part, "signature")
                if text and thinks_in_text:
                    yield StoredPart(reasoning=StoredReasoning(text=text, signature=signature, prompted=True))
                elif text:
                    yield StoredPart(text=StoredText(text=text, signature=signature))
            case {"type": "image", "source": dict(source)}:
                yield StoredPart(image=image_of(source, where))
            case {"type": "reasoning", "reasoning": str(text)}:
                prompted = part.get("is_native") is False
                signature = _text(part, "signature")
                if text or signature:
                    yield StoredPart(reasoning=StoredReasoning(text=text, signature=signature, prompted=prompted))
            case {"type": "redacted_reasoning", "data": str(data)}:
                yield StoredPart(redacted_reasoning=data)
            case {"type": "omitted_reasoning"}:
                if signature := _text(part, "signature"):
                    yield StoredPart(reasoning=StoredReasoning(signature=signature))
            case {"type": "summarized_reasoning", "summary": list(summary)}:
                if text := "\n\n".join(each["text"] for each in summary if isinstance(each, dict) and each.get("text")):
                    yield StoredPart(reasoning=StoredReasoning(text=text))
            case {"type": "tool_call", "id": str(call_id), "name": str(name), "input": given}:
                arguments = given if isinstance(given, str) else orjson.dumps(given).decode()
                yield StoredPart(call=StoredCall(id=call_id, name=name, arguments=arguments))
            case {"type": "tool_return", "tool_call_id": str(call_id), "content": str(text)}:
                yield StoredPart(tool_return=unwrapped(call_id, "", text, is_error=bool(part.get("is_error"))))
            case _:
                raise invalid_file(f"{where}.content has a part that cannot be read: {str(part.get('type'))[:80]}")


def calls_of(calls: Iterable[Json] | None, where: str) -> Iterator[StoredCall]:
    """Raises InvalidArgument (AGENT_FILE_INVALID)."""
    for call in calls or ():
        match call:
            case {"id": str(call_id), "function": {"name": str(name), "arguments": str(arguments)}}:
                yield StoredCall(id=call_id, name=name, arguments=arguments)
            case _:
                raise invalid_file(f"{where}.tool_calls has an entry that is no call")


def returns_of(returns: Iterable[Json] | None, name: str, where: str) -> Iterator[message_pb2.ToolReturn]:
    """Raises InvalidArgument (AGENT_FILE_INVALID)."""
    for each in returns or ():
        words = each.get("func_response")
        part = unwrapped(
            str(each.get("tool_call_id") or ""),
            name,
            words if isinstance(words, str) else "" if words is None else orjson.dumps(words).decode(),
            is_error=each.get("status") == "error",
        )
        part.stdout.extend(map(str, each.get("stdout") or ()))
        part.stderr.extend(map(str, each.get("stderr") or ()))
        for image in each.get("images") or ():
            if isinstance(image, dict) and isinstance(image.get("source"), dict):
                part.content.append(message_pb2.ContentPart(image=image_of(image["source"], where)))
        yield part


def unwrapped(call_id: str, name: str, text: str, *, is_error: bool = False) -> message_pb2.ToolReturn:
    """Returns a tool's result, out of `{"status", "message", "time"}` where it is packed so."""
    try:
        packed = orjson.loads(text)
    except ValueError:
        packed = None
    match packed:
        case {"status": "OK" | "Failed" as status, "message": message} if packed.keys() <= _PACKED:
            text = str(message) if isinstance(message, str | None) else orjson.dumps(message).decode()
            is_error = is_error or status == "Failed"
    return message_pb2.ToolReturn(
        tool_call_id=call_id, name=name, tool_return=text, status="error" if is_error else "success"
    )


def image_of(source: Json, where: str) -> message_pb2.ImageContent:
    """Returns a picture: by value, or by address. Raises InvalidArgument (AGENT_FILE_INVALID)."""
    match source:
        case {"type": "url", "url": str(url)}:
            return message_pb2.ImageContent(url=url)
        case {"data": str(data)}:
            try:
                data = canonical(data)
            except ValueError:
                raise invalid_file(f"{where}.content has an image whose data is not base64") from None
            return message_pb2.ImageContent(data_base64=data, media_type=_text(source, "media_type") or "image/png")
    raise invalid_file(f"{where}.content has an image without data or url")


# Stored parts -> parts of a file ------------------------------------------------------------------------------------


def part_to_json(part: StoredPart, *, thinks_in_text: bool = False) -> Json | None:
    """Returns a part as JSON; None for calls, returns and decisions, which have members of their own."""
    match part.WhichOneof("part"):
        case "text":
            return {"type": "text", "text": part.text.text, "signature": part.text.signature or None}
        case "image":
            return image_to_rest(part.image)
        case "reasoning" if part.reasoning.prompted and thinks_in_text:
            return {"type": "text", "text": part.reasoning.text, "signature": part.reasoning.signature or None}
        case "reasoning" if not part.reasoning.text:
            return {"type": "omitted_reasoning", "signature": part.reasoning.signature or None}
        case "reasoning":
            return {
                "type": "reasoning",
                "is_native": not part.reasoning.prompted,
                "reasoning": part.reasoning.text,
                "signature": part.reasoning.signature or None,
            }
        case "redacted_reasoning":
            return {"type": "redacted_reasoning", "data": part.redacted_reasoning}
        case _:
            return None


def call_to_json(call: StoredCall) -> Json:
    """Returns a call."""
    function = {"arguments": call.arguments, "name": call.name}
    return {"id": call.id, "function": function, "type": "function"}


def return_to_json(returned: message_pb2.ToolReturn, packed: str) -> Json:
    """Returns a return; `packed`: its text as the form has it. Pictures stand in a member that other servers ignore."""
    pictures = [image_to_rest(part.image) for part in returned.content if part.WhichOneof("part") == "image"]
    fields: Json = {
        "tool_call_id": returned.tool_call_id,
        "status": returned.status or "success",
        "stdout": list(returned.stdout) or None,
        "stderr": list(returned.stderr) or None,
        "func_response": packed,
    }
    return fields | ({"images": pictures} if pictures else {})


def _text(holder: Json, name: str) -> str:
    value = holder.get(name)
    return value if isinstance(value, str) else ""
