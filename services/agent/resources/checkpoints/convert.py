"""Checkpoints, rewinds and forks <-> protobuf."""

from uuid import UUID

from loci.agent.v1 import checkpoint_pb2, checkpoint_service_pb2
from services.agent.resources.agents.convert import agent_to_proto
from services.agent.resources.agents.model.state import AgentState
from services.agent.resources.checkpoints.model import Checkpoint, CheckpointKind, CheckpointRef
from services.agent.resources.checkpoints.ports import Inheritance, Rewind, RewoundBlock
from services.agent.resources.checkpoints.service import ConversationRef
from services.agent.resources.conversations.convert import place
from services.common.errors import InvalidArgument
from services.common.ids import from_public, to_public
from services.common.timestamps import timestamp

CHECKPOINTS_PER_PAGE = 50
_PREFIXES = {CheckpointKind.RUN: "run", CheckpointKind.STEP: "step", CheckpointKind.INPUT: "message"}
_KINDS = {prefix: kind for kind, prefix in _PREFIXES.items()}


def checkpoint_to_proto(checkpoint: Checkpoint, conversation_id: UUID) -> checkpoint_pb2.Checkpoint:
    """Returns a checkpoint as clients see it."""
    ref = checkpoint.ref
    return checkpoint_pb2.Checkpoint(
        id=_public(ref),
        conversation_id=to_public("conv", conversation_id),
        run_id=to_public("run", checkpoint.run_id),
        step_id=to_public("step", ref.id) if ref.kind is CheckpointKind.STEP else "",
        kind=checkpoint_pb2.CheckpointKind.Value(f"CHECKPOINT_KIND_{ref.kind.name}"),
        message_id=to_public("message", checkpoint.message.id),
        created_at=timestamp(checkpoint.created_at),
        label=checkpoint.label,
        block_versions={to_public("block", block_id): version for block_id, version in checkpoint.versions.items()},
    )


def rewind_to_proto(rewind: Rewind) -> checkpoint_pb2.Rewind:
    """Returns a rewind as clients see it."""
    return checkpoint_pb2.Rewind(
        id=to_public("rewind", rewind.id),
        conversation_id=to_public("conv", rewind.conversation_id),
        checkpoint_id=_public(rewind.to),
        left_checkpoint_id="" if rewind.left is None else _public(rewind.left),
        blocks=map(_block, rewind.blocks),
        created_at=timestamp(rewind.created_at),
        created_by_id=to_public("user", rewind.created_by_id),
    )


def fork_to_proto(described: AgentState, inheritance: Inheritance) -> checkpoint_service_pb2.ForkAgentResponse:
    """Returns a new agent, and what of it was copied and what is shared."""
    return checkpoint_service_pb2.ForkAgentResponse(
        agent=agent_to_proto(described),
        copied_block_ids=[to_public("block", each) for each in inheritance.block_ids],
        shared_archive_ids=[to_public("archive", each) for each in inheritance.archive_ids],
        shared_folder_ids=[folder.id for folder in described.folders],
        shared_tool_ids=[to_public("tool", each) for each in described.agent.settings.tool_ids],
        shared_until_message_id=to_public("message", inheritance.message_id),
    )


def checkpoint_ref(text: str) -> CheckpointRef:
    """Returns the run or message that a checkpoint's id names. Raises InvalidArgument (INVALID_ID)."""
    kind = _KINDS.get(text.partition("-")[0])
    if kind is None:
        raise InvalidArgument(
            f"{text[:80]!r} is not a checkpoint's id; expected that of a run, a step or a message",
            reason="INVALID_ID",
            metadata={"prefix": "run"},
        )
    return CheckpointRef(kind, from_public(_PREFIXES[kind], text))


def where(request: object) -> ConversationRef:
    """Returns the conversation that a request names. Raises InvalidArgument (INVALID_ID)."""
    return ConversationRef(*place(request))


def _public(ref: CheckpointRef) -> str:
    return to_public(_PREFIXES[ref.kind], ref.id)


def _block(block: RewoundBlock) -> checkpoint_pb2.RewoundBlock:
    scope = f"BLOCK_SCOPE_{block.scope.upper() or 'UNSPECIFIED'}"
    return checkpoint_pb2.RewoundBlock(
        block_id=to_public("block", block.block_id),
        label=block.label,
        version=block.version,
        outcome=checkpoint_pb2.BlockOutcome.Value(f"BLOCK_OUTCOME_{block.outcome.upper()}"),
        scope=checkpoint_pb2.BlockScope.Value(scope),
    )
