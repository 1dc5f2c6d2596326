"""What is made from a template one by one, with the ids that say so."""

from typing import Annotated, Literal

from pydantic import Field

from gateway.resources.agents.requests import CreateAgent
from gateway.resources.blocks.requests import BlockBody
from gateway.resources.groups.requests import CreateGroup

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
