"""Wishes for a turn that OpenAI's dialects know beyond the REST API's own requests. Pure."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from gateway.errors.invalid import InvalidRequest
from gateway.resources.messages.requests import SendMessages
from gateway.rest.body import Json
from loci.agent.v1 import message_service_pb2


class AgentTurn(SendMessages):
    """A turn. `first_call`: the tool that the agent has to begin with, "" for any, None for none."""

    first_call: str | None = None
    parallel_tool_calls: bool | None = None
    stop: tuple[str, ...] = ()
    instructions: str | None = None

    def options(self) -> message_service_pb2.TurnOptions:
        """Returns the options of this request alone."""
        options = super().options()
        if self.first_call is not None:
            any_tool = {"any_tool": True} if not self.first_call else {"tool_name": self.first_call}
            options.first_call.MergeFrom(message_service_pb2.FirstCall(**any_tool))
        if self.parallel_tool_calls is not None:
            options.parallel_tool_calls = self.parallel_tool_calls
        options.stop.extend(self.stop)
        options.instructions = self.instructions or ""
        return options


@dataclass(frozen=True)
class ToolChoice:
    """The client's tools that are offered, and what the agent has to begin with."""

    offered: Collection[str]
    first_call: str | None = None


def tool_choice(choice: str | Json | None, names: Sequence[str]) -> ToolChoice:
    """Returns the choice among the client's tools of these names. Raises InvalidRequest."""
    match choice:
        case None | "auto":
            return ToolChoice(names)
        case "none":
            return ToolChoice(())
        case "required":
            return ToolChoice(names, "")
        case {"type": "function", "function": {"name": str(name)}} | {"type": "function", "name": str(name)}:
            return ToolChoice(names, _known(name, names))
        # Chat completions have it in an object of its own, responses have not.
        case {"type": "allowed_tools", "allowed_tools": {"tools": list(tools), **more}}:
            return _allowed(tools, more.get("mode"), names)
        case {"type": "allowed_tools", "tools": list(tools), **more}:
            return _allowed(tools, more.get("mode"), names)
    sentence = "`tool_choice` is auto, none, required, or names functions of `tools`"
    raise InvalidRequest(sentence, "body", "tool_choice")


def _allowed(tools: Sequence[Any], mode: Any, names: Sequence[str]) -> ToolChoice:
    offered = [_known(_name_of(tool), names) for tool in tools]
    return ToolChoice(offered, "" if mode == "required" else None)


def _name_of(tool: Any) -> str:
    match tool:
        case {"function": {"name": str(name)}} | {"name": str(name)}:
            return name
    return ""


def _known(name: str, names: Sequence[str]) -> str:
    if name not in names:
        raise InvalidRequest(f"`tool_choice` names {name[:80]!r}, which is not among `tools`", "body", "tool_choice")
    return name
