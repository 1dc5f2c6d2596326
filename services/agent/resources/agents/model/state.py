"""An agent as it is asked for, and as it is told of: with its parts from other services."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from services.agent.core.messages import Message
from services.agent.resources.agents.model.checks import SettingValues
from services.agent.resources.agents.model.settings import Agent


@dataclass(frozen=True, slots=True, kw_only=True)
class NewAgent:
    """A request for an agent. `blocks` are drafts as the memory service takes them, with ids.

    include_base_tool_rules: None for what is usual for the agent type. messages: what it begins with, without a run.
    include_default_messages: where there are none, it begins as its type does. secrets: for its tools, by name.
    """

    agent_id: UUID
    settings: SettingValues
    blocks: Sequence[Any] = ()
    block_ids: tuple[UUID, ...] = ()
    folder_ids: tuple[UUID, ...] = ()
    identity_ids: tuple[UUID, ...] = ()
    tool_names: tuple[str, ...] = ()
    include_base_tools: bool = True
    include_base_tool_rules: bool | None = None
    messages: tuple[Message, ...] = ()
    include_default_messages: bool = True
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class AgentState:
    """An agent with its blocks, tools, folders and their files, as their services gave them."""

    agent: Agent
    blocks: Sequence[Any] = ()
    tools: Sequence[Any] = ()
    folders: Sequence[Any] = ()
    files: Sequence[Any] = ()
