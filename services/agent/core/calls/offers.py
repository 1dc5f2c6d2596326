"""The tools that a model call offers, with what an agent type adds to them, and which may be called. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from services.agent.core.calls.arguments import Problem, check_prefilled
from services.agent.core.continuation import HEARTBEAT
from services.agent.core.facts import ClientTool, Settings
from services.agent.core.groups.words import GROUP_TOOL
from services.agent.core.messages import Gate
from services.agent.core.policy import POLICIES
from services.agent.core.ports import ToolInfo
from services.agent.core.rules.tool_rules import Choice, allows_parallel, choose, is_terminal, needs_approval
from services.agent.core.turn import Turn

THINKING = "thinking"
CLIENT = "client"
SPEAKING = "send_message"
# Its return.
SENT = "The message was sent."
_NO_ID = UUID(int=0)
_HEARTBEAT_SCHEMA = {
    "type": "boolean",
    "description": "Whether you go on with another step when this call has returned. Without it the turn ends.",
}
_THINKING_SCHEMA = {"type": "string", "description": "What you think, in private, before you make this call."}


@dataclass(frozen=True, slots=True)
class Offer:
    """The tools that a run can call, as they are without what the agent type adds, and the choice for one step."""

    tools: tuple[ToolInfo, ...]
    choice: Choice
    forced: bool
    parallel: bool

    def gate(self, settings: Settings, name: str) -> Gate:
        """Returns why a call of `name` waits for the client; empty when it does not, or is refused anyway."""
        tool = self.tool(name)
        if tool is None or name not in self.choice.allowed or self.misfit(tool) is not None:
            return ""
        if tool.tool_type == CLIENT:
            return "client"
        return "approval" if needs_approval(settings.tool_rules, name) else ""

    @property
    def only(self) -> str | None:
        """Returns the one tool that must be called, if there is but one."""
        return self.choice.allowed[0] if self.forced and len(self.choice.allowed) == 1 else None

    def tool(self, name: str) -> ToolInfo | None:
        """Returns the tool of this name."""
        return next((tool for tool in self.tools if tool.name == name), None)

    def values(self, name: str) -> Mapping[str, Any]:
        """Returns the arguments that tool rules give for `name` now."""
        return self.choice.prefilled.get(name, {})

    def misfit(self, tool: ToolInfo) -> Problem | None:
        """Returns what is wrong with these arguments."""
        values = self.values(tool.name)
        return check_prefilled(values, tool.parameters) if values else None

    def thinks(self, settings: Settings, name: str) -> bool:
        """Returns whether a call of `name` has an argument for thoughts, and the tool none of that name of its own."""
        tool = self.tool(name)
        own = tool is not None and THINKING in _properties(tool)
        return POLICIES[settings.agent_type].inner_thoughts and not own


def offer(turn: Turn, attached: Sequence[ToolInfo]) -> Offer:
    """Returns what the next model call of a turn offers; `attached` are the agent's own tools."""
    settings = turn.settings
    clients = tuple(map(_of_client, settings.options.client_tools))
    hidden = {tool.name for tool in clients}
    tools = (*(tool for tool in with_group_tools(attached, settings) if tool.name not in hidden), *clients)
    choice = choose(settings.tool_rules, [tool.name for tool in tools], turn.called)
    if not turn.step:
        choice = _begin_with(choice, settings.options.first_call)
    wished = settings.options.parallel_tool_calls
    if wished is None:
        wished = settings.model_settings.get("parallel_tool_calls") is True
    return Offer(
        tools,
        choice,
        forced=bool(tools) and (choice.forced or POLICIES[settings.agent_type].must_call),
        parallel=wished and allows_parallel(settings.tool_rules) and not POLICIES[settings.agent_type].must_call,
    )


def with_group_tools(attached: Sequence[ToolInfo], settings: Settings) -> tuple[ToolInfo, ...]:
    """Returns an agent's tools, and those that its group gives it for this turn, which hide others of their names."""
    given = tuple(replace(_of_client(tool), tool_type=GROUP_TOOL) for tool in settings.options.group_tools)
    names = {tool.name for tool in given}
    return (*(tool for tool in attached if tool.name not in names), *given)


def _begin_with(choice: Choice, first_call: str | None) -> Choice:
    """Returns the choice of a request that has to begin with a call; tool rules come before what it wants."""
    if first_call is None or choice.only is not None:
        return choice
    if not first_call:
        return replace(choice, forced=True)
    if first_call not in choice.allowed:
        return choice
    return replace(choice, allowed=(first_call,), forced=True)


def offered_tools(offered: Offer, settings: Settings, *, reasons: bool = False) -> tuple[ToolInfo, ...]:
    """Returns the tools as the model sees them.

    A model that `reasons` by itself is asked for no thoughts in arguments.

    Those that may be called now, and no others, as the reference does: a model that is shown a tool calls it.
    """
    policy = POLICIES[settings.agent_type]
    thinks = policy.inner_thoughts and not reasons
    allowed = tuple(tool for tool in offered.tools if tool.name in offered.choice.allowed)
    if not (policy.heartbeats or thinks):
        return allowed
    return tuple(_extend_schema(tool, settings, thinks=thinks) for tool in allowed)


def _extend_schema(tool: ToolInfo, settings: Settings, *, thinks: bool) -> ToolInfo:
    policy = POLICIES[settings.agent_type]
    properties, names = _properties(tool), tool.parameters.get("required")
    required = names if isinstance(names, list) else []
    if tool.name == SPEAKING and (form := _form(settings)) is not None:
        properties = {**properties, "message": form}
    if thinks and THINKING not in properties:
        # First, so that it is written before the arguments that it is about.
        properties, required = {THINKING: _THINKING_SCHEMA, **properties}, [THINKING, *required]
    if policy.heartbeats and HEARTBEAT not in properties and not is_terminal(settings.tool_rules, tool.name):
        properties, required = {**properties, HEARTBEAT: _HEARTBEAT_SCHEMA}, [*required, HEARTBEAT]
    return replace(tool, parameters={**tool.parameters, "properties": properties, "required": required})


def _properties(tool: ToolInfo) -> dict[str, Any]:
    """Returns the properties of its schema, which is a user's: it may be JSON of any other shape."""
    properties = tool.parameters.get("properties")
    return properties if isinstance(properties, dict) else {}


def without_form(settings: Settings) -> Settings:
    """Returns the settings of a model that speaks by calls alone: the response format is in the tool's schema."""
    others = {name: value for name, value in settings.model_settings.items() if name != "response_format"}
    return replace(settings, response_format=None, model_settings=others)


def _form(settings: Settings) -> Mapping[str, Any] | None:
    """Returns the JSON Schema that what the agent says has to have: agents that speak by a call are told it there."""
    response_format = settings.response_format or settings.model_settings.get("response_format") or {}
    schema = (
        (response_format.get("json_schema") or {}).get("schema")
        if response_format.get("type") == "json_schema"
        else None
    )
    return schema if isinstance(schema, Mapping) else None


def _of_client(tool: ClientTool) -> ToolInfo:
    parameters = dict(tool.parameters) or {"type": "object", "properties": {}}
    return ToolInfo(_NO_ID, tool.name, CLIENT, tool.description, parameters)
