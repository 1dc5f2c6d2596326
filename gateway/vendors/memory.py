"""An agent's memory in a request to a vendor, and the exchange as it is kept. Pure."""

import json
from typing import Any

import orjson

from gateway.errors.invalid import InvalidRequest
from gateway.resources.messages.stored_requests import CaptureMessages
from gateway.rest.json_body import parse
from loci.agent.v1 import message_pb2

Asked = dict[str, Any]


def request_of(body: bytes) -> Asked:
    """Returns the request. Raises InvalidRequest where it is no JSON object."""
    try:
        value = parse(body)
    except json.JSONDecodeError as error:
        raise InvalidRequest(f"the body is not JSON that can be stored: {error.msg}", "body") from None
    if not isinstance(value, dict):
        raise InvalidRequest("the body is not a JSON object", "body")
    return value


def with_memory(request: Asked, memory: str) -> bytes:
    """Returns the request as it is sent: memory comes last in `system`, so that what the client has cached before it
    stays.

    Raises InvalidRequest where `system` is neither a text nor a list.
    """
    match request.get("system"):
        case _ if not memory:
            return orjson.dumps(request)
        case None | "" | []:
            system: Any = memory
        case str(text):
            system = f"{text}\n\n{memory}"
        case list(blocks):
            system = [*blocks, {"type": "text", "text": memory}]
        case _:
            raise InvalidRequest("`system` is neither a text nor a list of texts", "body", "system")
    return orjson.dumps({**request, "system": system})


def exchange(request: Asked, reply: str) -> list[message_pb2.InputMessage]:
    """Returns the messages to store: the last message, where it is the user's, and the reply; of both the text.

    Empty: there are none.

    Where the last message returns what a tool said, the user spoke in an earlier request, which was stored then.
    """
    messages = request.get("messages")
    last = messages[-1] if isinstance(messages, list) and messages else None
    request_messages = [last] if isinstance(last, dict) and last.get("role") == "user" else []
    captured = CaptureMessages(request_messages=request_messages, response_dict={"content": reply} if reply else None)
    try:
        return captured.messages()
    except InvalidRequest:
        return []
