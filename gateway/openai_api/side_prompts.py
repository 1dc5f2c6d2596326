"""Prompts that a chat page writes itself, for a title, tags or what to ask next. Pure.

They quote the conversation and look like the user's messages. An agent that was told them would remember them. So its
model answers them, without the agent's memory, and nothing is stored.
"""

import re
import time
from collections.abc import Iterator

from gateway.openai_api.chat import usage
from gateway.openai_api.requests import ChatCompletion, ChatMessage
from gateway.rest.body import dump
from gateway.rest.convert import Rest
from gateway.rest.event_frames import DONE, frame
from loci.agent.v1 import model_call_service_pb2
from services.common.ids import uuid7

# Open WebUI's begin with the first and quote the chat; that of its retrieval does not, and belongs to the agent.
_TASK = re.compile(r"\s*### Task:.*<chat_history>", re.DOTALL)
# Its older ones, and LibreChat's.
_PHRASES = re.compile(
    r"\s*(your task is to reflect the speaker's likely facial expression through a fitting emoji"
    r"|(please )?(create|generate|provide|write) a concise, (3-5|5)[- ]word"
    r"|analyze this conversation and provide:\s*1\. the detected language)",
    re.IGNORECASE,
)


def is_side_prompt(body: ChatCompletion) -> bool:
    """Returns whether a request is for the page and not for the agent: it says so (`metadata.task`), or reads so."""
    if (body.metadata or {}).get("task"):
        return True
    text = _text(body.messages[-1])
    return body.messages[-1].role in ("user", "system") and bool(_TASK.match(text) or _PHRASES.match(text))


def generation(body: ChatCompletion, agent_id: str) -> model_call_service_pb2.GenerateTextRequest:
    """Returns the call of the agent's model that answers it."""
    match body.response_format:
        case {"type": "json_schema", "json_schema": {"schema": dict(schema)}}:
            schema_json = dump(schema)
        case _:
            schema_json = ""
    return model_call_service_pb2.GenerateTextRequest(
        agent_id=agent_id,
        prompt="\n\n".join(filter(None, map(_text, body.messages))),
        response_schema_json=schema_json,
    )


def completion(answer: model_call_service_pb2.GenerateTextResponse, agent_id: str) -> Rest:
    """Returns the answer as a chat completion."""
    message = {"role": "assistant", "content": answer.content, "refusal": None}
    choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
    return _head(agent_id, "chat.completion") | {"choices": [choice], "usage": usage(answer.usage)}


def frames(answer: model_call_service_pb2.GenerateTextResponse, agent_id: str, body: ChatCompletion) -> Iterator[bytes]:
    """Yields the answer as a stream."""
    head = _head(agent_id, "chat.completion.chunk")
    choice = {"index": 0, "delta": {"role": "assistant", "content": answer.content}, "finish_reason": None}
    yield frame(head | {"choices": [choice]})
    yield frame(head | {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    if body.with_usage:
        yield frame(head | {"choices": [], "usage": usage(answer.usage)})
    yield DONE


def _head(agent_id: str, kind: str) -> Rest:
    return {"id": f"chatcmpl-{uuid7()}", "object": kind, "created": int(time.time()), "model": agent_id}


def _text(message: ChatMessage) -> str:
    if message.content is None or isinstance(message.content, str):
        return message.content or ""
    return "\n".join(str(part.get("text") or "") for part in message.content)
