"""Responses as OpenAI's clients ask for them, with an agent in the place of the model. Pure.

As in a chat completion, what an agent said already may stand in the input: new is what comes after it.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from gateway.errors.invalid import InvalidRequest
from gateway.openai_api.agent_turns import AgentTurn, tool_choice
from gateway.openai_api.chat import image_source
from gateway.resources.messages.approvals import ToolReturn, ToolReturnCreate
from gateway.resources.messages.content import Content, ContentPart, ImagePart, TextPart
from gateway.resources.messages.requests import ClientTool, InputMessage, MessageCreate
from gateway.rest.body import Int32, Json, LenientBody

_ROLES = {"user": "user", "system": "system", "developer": "system"}
# Items that only the agent makes; a reference is to one of them.
_AGENTS = frozenset({"function_call", "reasoning", "item_reference"})
# The id of a response, of an item in one or of a call holds that of its run: some clients send no other back.
_RUN = r"([0-9a-f]{8})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{12})"
_ID = re.compile(rf"(?:resp|msg|rs|fc)_{_RUN}(?:_\d+)?|.*_r{_RUN}", re.DOTALL)


class CreateResponse(LenientBody):
    """Body of responses.create. `model` is an agent; `max_steps` and `on_busy` are Loci's own, as for messages.

    How the model samples is the agent's setting; what is said of it here is passed over, as is what only helps a
    vendor's bookkeeping.
    """

    model: Annotated[str, Field(min_length=1)]
    input: str | list[Json]
    instructions: str | None = None
    previous_response_id: str | None = None
    conversation: str | Json | None = None
    stream: bool | None = False
    background: bool | None = False
    store: bool | None = None
    tools: list[Json] | None = None
    tool_choice: str | Json | None = None
    parallel_tool_calls: bool | None = None
    text: Json | None = None
    metadata: dict[str, Any] | None = None
    max_steps: Annotated[Int32, Field(ge=1)] = 50
    on_busy: Literal["wait", "reject", "interrupt"] | None = None

    def turn(self) -> AgentTurn:
        """Returns the turn that is wanted. Raises InvalidRequest."""
        tools = [_client_tool(tool) for tool in self.tools or ()]
        choice = tool_choice(self.tool_choice, [tool.name for tool in tools])
        fields: dict[str, Any] = {
            "messages": list(_messages(self.new_items())),
            "instructions": self.instructions,
            "client_tools": [tool for tool in tools if tool.name in choice.offered] or None,
            "first_call": choice.first_call,
            "parallel_tool_calls": self.parallel_tool_calls,
            "response_format": _response_format((self.text or {}).get("format")),
            "max_steps": self.max_steps,
            "on_busy": self.on_busy,
        }
        return AgentTurn(**fields)

    def items(self) -> list[Json]:
        """Returns the input as items."""
        return [{"role": "user", "content": self.input}] if isinstance(self.input, str) else self.input

    def new_items(self) -> list[Json]:
        """Returns what the agent was not told yet. Raises InvalidRequest."""
        items = self.items()
        last = max((index for index, item in enumerate(items) if _is_agents(item)), default=-1)
        if not items[last + 1 :]:
            raise InvalidRequest("the last item of `input` is the agent's own; say something to it", "body", "input")
        return items[last + 1 :]

    def has_history(self) -> bool:
        """Returns whether the input has what the agent said before."""
        return any(map(_is_agents, self.items()))

    def earlier_run(self) -> str | None:
        """Returns the run that this goes on from: that of the response, or of the last item of the history.

        Raises InvalidRequest for the id of no response.
        """
        if self.previous_response_id:
            run_id = run_of(self.previous_response_id)
            if run_id is None:
                raise InvalidRequest(f"no response has the id {self.previous_response_id[:80]}", "body", _PREVIOUS)
            return run_id
        return next(filter(None, map(_run_of_item, reversed(self.items()))), None)


_PREVIOUS = "previous_response_id"


def response_id(run_id: str) -> str:
    """Returns the id of the response that a run makes."""
    return f"resp_{bare_id(run_id)}"


def bare_id(run_id: str) -> str:
    """Returns a run's id without prefix and dashes."""
    return run_id.removeprefix("run-").replace("-", "")


def run_of(public_id: str) -> str | None:
    """Returns the run in the id of a response or of one of its items; None for an id that is not ours."""
    match = _ID.fullmatch(public_id)
    return f"run-{'-'.join(filter(None, match.groups()))}" if match else None


def call_id_of(call_id: str, bare_run_id: str) -> str:
    """Returns the id by which a client knows a call of a run."""
    return f"{call_id}_r{bare_run_id}"


def _run_of_item(item: Json) -> str | None:
    ids = (item.get("id") if _is_agents(item) else None, item.get("call_id"))
    return next((run_id for public_id in ids if (run_id := run_of(str(public_id)))), None)


def _is_agents(item: Json) -> bool:
    return str(item.get("type")) in _AGENTS or item.get("role") == "assistant"


def _messages(items: Sequence[Json]) -> Iterable[InputMessage]:
    """Returns the messages of a turn, the returns of the client's tools before all others."""
    if returns := [_return(item) for item in items if item.get("type") == "function_call_output"]:
        yield ToolReturnCreate(tool_returns=returns)
    for item in items:
        kind, role = item.get("type") or "message", _ROLES.get(str(item.get("role")))
        if kind == "message" and role is not None:
            yield MessageCreate.model_validate({"role": role, "content": _content(item.get("content"))})
        elif kind != "function_call_output":
            raise InvalidRequest(f"items of type {kind} are not taken", "body", "input")


def _return(item: Json) -> ToolReturn:
    call_id = item.get("call_id")
    if not isinstance(call_id, str) or not call_id:
        raise InvalidRequest("a function_call_output needs a `call_id`", "body", "input")
    own = call_id.rpartition("_r")[0] if run_of(call_id) else call_id
    return ToolReturn(tool_call_id=own, tool_return=_content(item.get("output")), status="success")


def _content(content: Any) -> Content:
    if isinstance(content, str):
        return content
    if not isinstance(content, list) or not content:
        raise InvalidRequest("an item needs text or a list of parts", "body", "input")
    return [_part(part) for part in content]


def _part(part: Any) -> ContentPart:
    match part:
        case {"type": "input_text" | "output_text" | "text", "text": str(text)}:
            return TextPart(text=text)
        case {"type": "input_image", "image_url": str(url)}:
            return ImagePart(type="image", source=image_source(url, "input"))
    kind = part.get("type") if isinstance(part, dict) else part
    advice = "put it into a folder of the agent" if kind == "input_file" else "use input_text and input_image"
    raise InvalidRequest(f"content of type {kind} is not taken; {advice}", "body", "input")


def _client_tool(tool: Json) -> ClientTool:
    kind, name = tool.get("type"), tool.get("name")
    if kind != "function" or not isinstance(name, str):
        raise InvalidRequest(
            f"tools of type {kind} are not taken; use functions, and attach other tools to the agent", "body", "tools"
        )
    try:
        return ClientTool(name=name, description=tool.get("description"), parameters=tool.get("parameters"))
    except ValidationError as error:
        raise InvalidRequest(f"the tool {name[:80]!r}: {error.errors()[0]['msg']}", "body", "tools") from None


def _response_format(form: Any) -> Json | None:
    """Returns the form of the answer in the shape of chat completions."""
    if not isinstance(form, dict):
        return None
    if form.get("type") != "json_schema":
        return {"type": form.get("type")}
    return {"type": "json_schema", "json_schema": {name: value for name, value in form.items() if name != "type"}}
