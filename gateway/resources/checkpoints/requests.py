"""Journeys to checkpoints."""

from typing import Annotated

from pydantic import AfterValidator, Field

from gateway.rest.body import Body
from gateway.rest.params import AgentInBody, checkpoint_id

CheckpointInBody = Annotated[str, AfterValidator(checkpoint_id)]


class Rewind(Body):
    """Body of rewind."""

    checkpoint_id: CheckpointInBody
    # False: all blocks stay as they are.
    restore_blocks: bool = True
    agent_id: AgentInBody = None


class ForkAgent(Body):
    """Body of an agent's fork. Without a name it is that of the other and " (fork)"."""

    checkpoint_id: CheckpointInBody
    name: Annotated[str, Field(min_length=1)] | None = None
