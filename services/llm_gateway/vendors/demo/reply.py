"""The demo model's next reply to a conversation: which step of its plan is due. Pure."""

import hashlib
from collections.abc import Sequence

import orjson

from services.llm_gateway.core.chat import (
    ChatRequest,
    Message,
    Part,
    ResponseFormat,
    Role,
    Text,
    ToolCall,
    ToolMode,
    ToolResult,
    ToolSpec,
)
from services.llm_gateway.vendors.demo.directives import PlannedCall, Step
from services.llm_gateway.vendors.demo.plan import CallResult, plan, readable
from services.llm_gateway.vendors.demo.samples import sample

# With tools like the older agents', the model speaks to the user by a call.
_SPEAKING = "send_message"


def next_parts(request: ChatRequest) -> list[Part]:
    """The parts of the reply: a step's tool calls, or a text."""
    system = "\n".join(text_of(message) for message in request.messages if message.role is Role.SYSTEM)
    question, after = _current_turn(request.messages)
    tools = _allowed_tools(request)
    plan_of_turn = plan(question, system, tools)
    steps = (
        plan_of_turn.steps
        if request.parallel_tool_calls is not False
        else [[call] for step in plan_of_turn.steps for call in step]
    )
    done = [message for message in after if any(isinstance(part, ToolCall) for part in message.parts)]
    if len(done) < len(steps):
        return _calls(steps[len(done)], request)
    answer = plan_of_turn.answer(_results(after))
    if request.forces_a_call and tools:
        return _calls([_forced_call(tools, question, answer)], request)
    return [Text(answer if request.response_format is None else _json_of(request.response_format, answer))]


def _calls(step: Step, request: ChatRequest) -> list[Part]:
    seed = hashlib.sha256(repr(request.messages).encode()).hexdigest()[:12]
    return [
        ToolCall(f"call_{seed}{index}", call.name, orjson.dumps(dict(call.arguments)).decode())
        for index, call in enumerate(step)
    ]


def _forced_call(tools: Sequence[ToolSpec], question: str, answer: str) -> PlannedCall:
    """A call that is demanded without the rules knowing what for: of the tool that speaks to the user, or else the
    first.
    """
    speaking = next((tool for tool in tools if tool.name == _SPEAKING), None)
    tool, text = (tools[0], question) if speaking is None else (speaking, answer)
    return PlannedCall(tool.name, sample({**orjson.loads(tool.parameters_json), "type": "object"}, text))


def _json_of(format: ResponseFormat, answer: str) -> str:
    value = {"answer": answer} if format.schema is None else sample(format.schema, answer)
    return orjson.dumps(value).decode()


def text_of(message: Message) -> str:
    """A message's text."""
    return "\n".join(part.text for part in message.parts if isinstance(part, Text))


def _current_turn(messages: Sequence[Message]) -> tuple[str, Sequence[Message]]:
    """The last user message's text and what came after it."""
    for index in range(len(messages) - 1, -1, -1):
        if messages[index].role is Role.USER:
            return text_of(messages[index]), messages[index + 1 :]
    return "", ()


def _allowed_tools(request: ChatRequest) -> Sequence[ToolSpec]:
    choice = request.tool_choice
    if choice is ToolMode.NONE:
        return ()
    return [tool for tool in request.tools if not isinstance(choice, str) or tool.name == choice]


def _results(messages: Sequence[Message]) -> list[CallResult]:
    """Each call since the question with its result, in order."""
    results: dict[str, ToolResult] = {}
    calls: list[ToolCall] = []
    for part in (part for message in messages for part in message.parts):
        if isinstance(part, ToolCall):
            calls.append(part)
        elif isinstance(part, ToolResult):
            results[part.tool_call_id] = part
    return [_return_of(call, results[call.id]) for call in calls if call.id in results]


def _return_of(call: ToolCall, result: ToolResult) -> CallResult:
    text = "\n".join(part.text for part in result.content if isinstance(part, Text))
    return CallResult(PlannedCall(call.name, {}), readable(text), result.is_error or _says_failed(text))


def _says_failed(text: str) -> bool:
    """Whether a result's own status says that it failed, where it is wrapped in one."""
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    return isinstance(value, dict) and str(value.get("status", "")).lower() in ("failed", "error")
