"""The reference's overview of a context window. Pure."""

from typing import Any

from gateway.resources.messages.responses import calls_of, message, message_type
from gateway.rest.convert import Rest, from_json, to_rest, whole_second
from loci.agent.v1 import message_pb2, model_call_service_pb2

_ROLES = {
    "system_message": "system",
    "user_message": "user",
    "tool_return_message": "tool",
    "approval_response_message": "approval",
}


def overview(source: model_call_service_pb2.GetContextWindowResponse, agent_id: str) -> Rest:
    """Returns the overview of a window, its tools and messages in the forms that the reference has for them here."""
    return to_rest(source, leave=frozenset({"messages", "functions_definitions"})) | {
        "functions_definitions": [_function(one) for one in source.functions_definitions],
        "messages": [_message(one, agent_id) for one in source.messages],
    }


def _function(source: model_call_service_pb2.FunctionDefinition) -> Rest:
    function = {"name": source.name, "description": source.description, "parameters": from_json(source.parameters_json)}
    return {"type": "function", "function": function}


def _message(source: message_pb2.Message, agent_id: str) -> Rest:
    """Returns a message by its role, as models know it."""
    content = message(source)
    calls = [
        {"id": call.tool_call_id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in calls_of(source)
    ]
    return {
        "id": source.id,
        "agent_id": agent_id,
        "role": _ROLES.get(message_type(source), "assistant"),
        "content": _content(content),
        "name": source.name or None,
        "tool_calls": calls or None,
        "tool_call_id": content.get("tool_call_id"),
        "step_id": source.step_id or None,
        "run_id": source.run_id or None,
        "otid": source.otid or None,
        "created_at": whole_second(source.date),
    }


def _content(content: Rest) -> list[Any]:
    if content["message_type"] == "reasoning_message":
        return [{"type": "reasoning", "reasoning": content["reasoning"], "signature": content["signature"]}]
    value = content.get("content", content.get("tool_return"))
    if isinstance(value, list):
        return value
    return [] if value is None else [{"type": "text", "text": value}]
