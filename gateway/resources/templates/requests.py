"""Templates: their bodies, and the names of their versions."""

import re
from typing import Annotated, Literal

from pydantic import Field

from gateway.errors.invalid import InvalidRequest
from gateway.resources.agents.requests import CreateAgent
from gateway.resources.blocks.requests import BlockBody
from gateway.resources.groups.requests import CreateGroup
from gateway.resources.messages.requests import MessageCreate
from gateway.rest.body import Body, Json
from gateway.rest.params import checked_id

_VERSION = re.compile(r"[1-9]\d{0,8}")
_WORKING = ("current", "dev")
_LATEST = "latest"
AgentKey = Annotated[str, checked_id("agent")]
IdentityKey = Annotated[str, checked_id("identity")]


class OfAgent(Body):
    """A template of an agent that is there."""

    type: Literal["agent"]
    agent_id: AgentKey
    name: str | None = None


class OfFile(Body):
    """A template of an agent file."""

    type: Literal["agent_file"]
    agent_file: Json
    name: str | None = None
    update_existing_tools: bool = False


CreateTemplate = Annotated[OfAgent | OfFile, Field(discriminator="type")]


class UpdateTemplate(Body):
    """Body of templates.update."""

    agent_file_json: Json
    save_existing_changes: bool = False
    update_existing_tools: bool = False


class SaveTemplate(Body):
    """Body of templates.save. What upgrades agents is refused for now."""

    message: str | None = None
    migrate_agents: bool = False
    preserve_core_memories_on_migration: bool = False
    preserve_environment_variables_on_migration: bool = False
    preserve_sources_on_migration: bool = False
    block_reconciliation_strategy: Literal["reconcile-all", "preserve-deleted"] | None = None


class RollBackTemplate(Body):
    """Body of templates.rollback."""

    version: str


class AgentsOfTemplate(Body):
    """Body of templates.agents.create."""

    agent_name: str | None = None
    tags: list[str] | None = None
    memory_variables: dict[str, str] | None = None
    tool_variables: dict[str, str] | None = Field(None, repr=False)
    identity_ids: list[IdentityKey] | None = None
    initial_message_sequence: list[MessageCreate] | None = None


def version_of(text: str, member: str = "version") -> int | None:
    """Returns the number of a saved version; None for the newest. Raises InvalidRequest."""
    if text == _LATEST:
        return None
    if not _VERSION.fullmatch(text):
        raise InvalidRequest("a version is a number from 1, or `latest`", "body", member)
    return int(text)


def named_version(text: str, member: str = "version") -> tuple[str, int | None]:
    """Returns name and version of `name`, `name:version` or `project/name:version`; 0: the working one, None: the
    newest saved one. Raises InvalidRequest, which names the member of the body.
    """
    name, colon, version = text.rpartition("/")[2].partition(":")
    if version in _WORKING:
        return name, 0
    return name, version_of(version, member) if colon else None


MOST_BLOCKS = 1_000
EntityType = Literal["block", "agent", "group"]


class DeployedGroup(CreateGroup):
    """Body of _internal_templates/groups."""

    base_template_id: str
    template_id: str
    deployment_id: str


class DeployedAgent(CreateAgent):
    """Body of _internal_templates/agents."""

    base_template_id: str
    template_id: str
    deployment_id: str
    entity_id: str


class DeployedBlock(BlockBody):
    """Body of _internal_templates/blocks."""

    base_template_id: str
    template_id: str
    deployment_id: str
    entity_id: str


DeployedBlocks = Annotated[list[DeployedBlock], Field(max_length=MOST_BLOCKS)]
