"""The tools of a request as its model's vendor takes them, so that no tool closes an agent. Pure.

A vendor that refuses one tool refuses the request, and so every message of its agent. So what can be said in another
way is (tool_schemas.py), what cannot is left out, and so is what a vendor refused by name or number before. Names that
the vendor does not take, of tools and of what a model once called, become like ones; replies get the originals back.
"""

import re
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256

import orjson

from services.llm_gateway.core.chat import (
    ChatRequest,
    Completed,
    Event,
    Message,
    Part,
    ToolCall,
    ToolCallDelta,
    ToolSpec,
)
from services.llm_gateway.core.errors import LlmBadRequest, LlmError, LlmSchemaRefused
from services.llm_gateway.core.models import ChatModel
from services.llm_gateway.core.tool_schemas import tool_schema

MOST_TOOLS = 128
# Of OpenAI; what is longer goes on in the description of the arguments, which has no limit.
_LONGEST_DESCRIPTION = 1_024
_OPENAIS = frozenset({"openai", "azure"})
_CLAUDES = frozenset({"anthropic", "minimax"})
_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}")
_FOREIGN = re.compile(r"[^a-zA-Z0-9_-]+")
_LONGEST_NAME = 64
_MOST_REFUSED = 5_000
# The ways in which vendors say which tool they refuse: by its name, or its number.
_BY_NAME = re.compile(
    r"(?:invalid schema for function|function ?declaration|schema (?:for|of) (?:the )?(?:tool|function))"
    r" [`'\"]([a-zA-Z0-9_-]{1,64})[`'\"]",
    re.IGNORECASE,
)
_BY_NUMBER = (
    re.compile(r"(?:function_declarations|functionDeclarations)(?:\.|\[)(\d+)\b"),
    re.compile(r"\btools(?:\.|\[)(\d+)\b"),
)
# Nothing else that begins so is about a schema.
_OF_A_TOOL = re.compile(r"schema|propert|parameter|nesting|input_schema|description|function|tool", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class FittedTools:
    """A request with the tools that can be sent. `problems`: why others are left out, by name; `tools` and `names` have
    the originals of names of tools and, by tool, of properties that were changed.
    """

    request: ChatRequest
    problems: Mapping[str, str] = field(default_factory=dict)
    tools: Mapping[str, str] = field(default_factory=dict)
    names: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    # The tools as they were, in the order in which they are sent.
    given: Sequence[ToolSpec] = ()

    def restored(self, event: Event) -> Event:
        """Returns an event of the reply with the original names. Pieces of arguments stay as the model wrote them."""
        if not self.tools and not self.names:
            return event
        if isinstance(event, ToolCallDelta):
            return replace(event, name=self.tools.get(event.name, event.name))
        if not isinstance(event, Completed):
            return event
        generation = event.generation
        parts = [self._restored(part) for part in generation.message.parts]
        return Completed(replace(generation, message=replace(generation.message, parts=parts)))

    def _restored(self, part: Part) -> Part:
        if not isinstance(part, ToolCall):
            return part
        call = _renamed(part, self.names.get(part.name, {}))
        return replace(call, name=self.tools.get(part.name, part.name))


def with_problems(event: Event, problems: Mapping[str, str]) -> Event:
    """Returns an event; the last says which tools were left out."""
    if not problems or not isinstance(event, Completed):
        return event
    return Completed(replace(event.generation, tool_problems=tuple(problems.items())))


class ToolFitting:
    """The fitting of requests, and what vendors refused."""

    def __init__(self) -> None:
        self._refused: OrderedDict[tuple[str, str, str, bytes], str] = OrderedDict()

    def fit(self, request: ChatRequest, model: ChatModel) -> FittedTools:
        """Returns what can be sent. Raises LlmSchemaRefused where the one tool that must be called is left out."""
        taken = {tool.name for tool in request.tools}
        problems: dict[str, str] = {}
        tools: list[ToolSpec] = []
        new_names: dict[str, str] = {}
        originals: dict[str, Mapping[str, str]] = {}
        sent: set[str] = set()
        given: list[ToolSpec] = []
        for tool in request.tools:
            schema = tool_schema(tool.parameters_json, narrow_names=_is_claude(model))
            problem = schema.problem
            if not problem and self._refused:
                problem = self._refused.get(_key(tool, model), "")
            if not problem and tool.name in sent:
                problem = "another tool has its name"
            if not problem and len(tools) == MOST_TOOLS and model.provider_type in _OPENAIS:
                problem = f"{model.provider_name} takes {MOST_TOOLS} tools"
            if problem:
                problems[tool.name] = problem
                continue
            sent.add(tool.name)
            given.append(tool)
            name = _valid(tool.name, taken)
            if name != tool.name:
                new_names[tool.name] = name
            if schema.names:
                originals[name] = schema.names
            fitted = replace(tool, name=name, parameters_json=schema.text, strict=tool.strict and schema.is_exact)
            tools.append(_shortened(fitted) if model.provider_type in _OPENAIS else fitted)
        if isinstance(request.tool_choice, str) and request.tool_choice in problems.keys() - sent:
            what = f"The tool {request.tool_choice} cannot be offered to {model.handle}"
            sentence = f"{what}: {problems[request.tool_choice]}. Change its schema, or choose another model."
            raise LlmSchemaRefused(sentence, provider=model.provider_name, handle=model.handle)
        return replace(_fitted(request, tools, problems, new_names, originals), given=given)

    def leave_out(self, error: LlmError, fitted: FittedTools, model: ChatModel) -> bool:
        """Returns whether the error is a refusal of one tool, which is then left out from now on."""
        if not isinstance(error, LlmSchemaRefused | LlmBadRequest) or not _OF_A_TOOL.search(error.message):
            return False
        place = next(_named_in(error.message, fitted.request.tools), None)
        if place is None:
            return False
        self._refused[_key(fitted.given[place], model)] = error.message
        while len(self._refused) > _MOST_REFUSED:
            self._refused.popitem(last=False)
        return True


def _named_in(message: str, tools: Sequence[ToolSpec]) -> Iterator[int]:
    """Yields the places of the tools that a refusal names."""
    for match in _BY_NAME.finditer(message):
        yield from (place for place, tool in enumerate(tools) if tool.name == match[1])
    # Google's have a number in a list that has one.
    numbers = (int(each[1]) for pattern in _BY_NUMBER if (each := pattern.search(message)) is not None)
    number = next(numbers, len(tools))
    if number < len(tools):
        yield number


def _key(tool: ToolSpec, model: ChatModel) -> tuple[str, str, str, bytes]:
    """Returns what a refusal is remembered by: the vendor may take it once its schema or description has changed."""
    said = sha256(f"{tool.description}\0{tool.parameters_json}".encode()).digest()
    return model.endpoint or model.provider_name, model.name, tool.name, said


def _is_claude(model: ChatModel) -> bool:
    names = f"{model.name} {model.base_model}".lower()
    return model.provider_type in _CLAUDES or "claude" in names or "anthropic" in names


def _valid(name: str, taken: set[str]) -> str:
    """Returns the name of a tool, or one like it that every vendor takes and no other tool has."""
    if _NAME.fullmatch(name):
        return name
    base = like_name(name)
    made, number = base, 1
    while made in taken:
        number += 1
        made = f"{base[: _LONGEST_NAME - 4]}_{number}"
    taken.add(made)
    return made


def like_name(name: str) -> str:
    """Returns a name that every vendor takes: letters, digits, `_` and `-`, beginning with no digit or dash."""
    like = _FOREIGN.sub("_", name).strip("_")[: _LONGEST_NAME - 1]
    if not like:
        return "unnamed"
    return like if like[0].isalpha() else f"_{like}"


def _shortened(tool: ToolSpec) -> ToolSpec:
    text = tool.description
    if len(text) <= _LONGEST_DESCRIPTION:
        return tool
    cut = text.rfind(" ", 0, _LONGEST_DESCRIPTION - 4)
    cut = cut if cut > _LONGEST_DESCRIPTION // 2 else _LONGEST_DESCRIPTION - 4
    schema = orjson.loads(tool.parameters_json)
    rest = f"(Of the tool: ... {text[cut:].strip()})"
    schema["description"] = " ".join(filter(None, (str(schema.get("description") or ""), rest)))
    return replace(tool, description=f"{text[:cut]} ...", parameters_json=orjson.dumps(schema).decode())


def _fitted(
    request: ChatRequest,
    tools: Sequence[ToolSpec],
    problems: Mapping[str, str],
    new_names: Mapping[str, str],
    originals: Mapping[str, Mapping[str, str]],
) -> FittedTools:
    renamed = {name: {old: new for new, old in names.items()} for name, names in originals.items()}
    messages = [_message(message, new_names, renamed) for message in request.messages]
    changes = any(one is not other for one, other in zip(messages, request.messages, strict=True))
    choice = request.tool_choice
    fitted = replace(
        request,
        messages=messages if changes else request.messages,
        tools=request.tools if list(tools) == list(request.tools) else tools,
        tool_choice=new_names.get(choice, choice) if isinstance(choice, str) else choice,
    )
    return FittedTools(fitted, problems, {new: old for old, new in new_names.items()}, originals)


def _message(message: Message, new_names: Mapping[str, str], renamed: Mapping[str, Mapping[str, str]]) -> Message:
    """Returns the message with its calls as the fitted tools are called, and names that no vendor takes like ones."""
    calls = [part for part in message.parts if isinstance(part, ToolCall)]
    if all(_NAME.fullmatch(call.name) and call.name not in renamed for call in calls):
        return message
    return replace(message, parts=[_part(part, new_names, renamed) for part in message.parts])


def _part(part: Part, new_names: Mapping[str, str], renamed: Mapping[str, Mapping[str, str]]) -> Part:
    if not isinstance(part, ToolCall):
        return part
    name = new_names.get(part.name, part.name)
    name = name if _NAME.fullmatch(name) else like_name(name)
    return replace(_renamed(part, renamed.get(name, {})), name=name)


def _renamed(call: ToolCall, names: Mapping[str, str]) -> ToolCall:
    """Returns the call with other names of its arguments, where it has any of these."""
    if not names:
        return call
    try:
        arguments = orjson.loads(call.arguments_json)
    except orjson.JSONDecodeError:
        return call
    if not isinstance(arguments, dict) or not arguments.keys() & names.keys():
        return call
    text = orjson.dumps({names.get(name, name): value for name, value in arguments.items()}).decode()
    return replace(call, arguments_json=text)
