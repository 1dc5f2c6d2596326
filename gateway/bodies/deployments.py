"""What is made from a template one by one, with the ids that say so."""

from typing import Annotated, Literal

from pydantic import Field

from gateway.bodies.agents import CreateAgent
from gateway.bodies.blocks import BlockBody
from gateway.bodies.groups import CreateGroup

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
