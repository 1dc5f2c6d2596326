"""The demo model's next reply to a conversation: which step of its plan is due. Pure."""

import hashlib
from collections.abc import Sequence
from typing import Any

import orjson

from services.llm_gateway.chat import (
    ChatRequest,
    Message,
    Part,
    Role,
    Text,
    ToolCall,
    ToolMode,
    ToolResult,
    ToolSpec,
)
from services.llm_gateway.providers.demo.directives import PlannedCall, Step
from services.llm_gateway.providers.demo.plan import Plan, Returned, plan, readable


def next_parts(request: ChatRequest) -> list[Part]:
    """The parts of the reply: a step's tool calls, or a text."""
    system = "\n".join(text_of(message) for message in request.messages if message.role is Role.SYSTEM)
    question, after = _current_turn(request.messages)
    made = plan(question, system, _allowed(request))
    steps = _ordered(made, request, question)
    done = [message for message in after if any(isinstance(part, ToolCall) for part in message.parts)]
    if len(done) < len(steps):
        seed = hashlib.sha256(repr(request.messages).encode()).hexdigest()[:12]
        return [
            ToolCall(f"call_{seed}{index}", call.name, orjson.dumps(dict(call.arguments)).decode())
            for index, call in enumerate(steps[len(done)])
        ]
    return [Text(made.answer(_returned(after)))]


def text_of(message: Message) -> str:
    """A message's text."""
    return "\n".join(part.text for part in message.parts if isinstance(part, Text))


def _current_turn(messages: Sequence[Message]) -> tuple[str, Sequence[Message]]:
    """The last user message's text and what came after it."""
    for index in range(len(messages) - 1, -1, -1):
        if messages[index].role is Role.USER:
            return text_of(messages[index]), messages[index + 1 :]
    return "", ()


def _allowed(request: ChatRequest) -> Sequence[ToolSpec]:
    choice = request.tool_choice
    if choice is ToolMode.NONE:
        return ()
    return [tool for tool in request.tools if not isinstance(choice, str) or tool.name == choice]


def _ordered(made: Plan, request: ChatRequest, question: str) -> Sequence[Step]:
    """The plan's steps, one call at a time where parallel calls are off; a call where one is demanded."""
    steps: Sequence[Step] = made.steps
    if request.parallel_tool_calls is False:
        steps = [[call] for step in steps for call in step]
    demanded = request.tool_choice is ToolMode.REQUIRED or isinstance(request.tool_choice, str)
    tools = _allowed(request)
    if not steps and demanded and tools:
        return [[PlannedCall(tools[0].name, _least_arguments(tools[0], question))]]
    return steps


def _least_arguments(tool: ToolSpec, question: str) -> dict[str, Any]:
    """The required arguments of a call that is demanded without the rules knowing what for."""
    schema = orjson.loads(tool.parameters_json or "{}")
    values: dict[str, Any] = {"integer": 1, "number": 1, "boolean": False, "array": [], "object": {}}
    properties = schema.get("properties") or {}
    kinds = {name: properties.get(name, {}).get("type") for name in schema.get("required") or ()}
    return {name: values.get(str(kind), question) for name, kind in kinds.items()}


def _returned(messages: Sequence[Message]) -> list[Returned]:
    """Each call since the question with its result, in order."""
    results: dict[str, ToolResult] = {}
    calls: list[ToolCall] = []
    for part in (part for message in messages for part in message.parts):
        if isinstance(part, ToolCall):
            calls.append(part)
        elif isinstance(part, ToolResult):
            results[part.tool_call_id] = part
    return [_return_of(call, results[call.id]) for call in calls if call.id in results]


def _return_of(call: ToolCall, result: ToolResult) -> Returned:
    text = "\n".join(part.text for part in result.content if isinstance(part, Text))
    return Returned(PlannedCall(call.name, {}), readable(text), result.is_error or _says_failed(text))


def _says_failed(text: str) -> bool:
    """Whether a result's own status says that it failed, where it is wrapped in one."""
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    return isinstance(value, dict) and str(value.get("status", "")).lower() in ("failed", "error")
