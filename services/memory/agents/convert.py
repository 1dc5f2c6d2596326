"""An agent's memory as a whole and its tools: protobuf to plain values and back."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from loci.memory.v1 import agent_memory_service_pb2 as agent_pb
from services.common.errors import InvalidArgument
from services.common.ids import from_public, to_public
from services.memory.agent_files.convert import directory_message, file_limits
from services.memory.agent_tools.model import ToolCall, ToolResult
from services.memory.agents.model import AgentMemory, BlockEdit, CopyRequest, RestoreRequest
from services.memory.archives.convert import archive_message
from services.memory.blocks.convert import block_message
from services.memory.blocks.model import Origin
from services.memory.core.storable import without_nul
from services.memory.folders.convert import folder_message
from services.memory.folders.model import Folder
from services.memory.wire import ids

_LONGEST_CALL_KEY = 200


def tool_call(request: agent_pb.ApplyToolRequest, organization_id: UUID, user_id: UUID) -> ToolCall:
    """Raises InvalidArgument (INVALID_ID, CALL_KEY_INVALID)."""
    return ToolCall(
        organization_id=organization_id,
        user_id=user_id,
        agent_id=ids.agent_id(request.agent_id),
        run_id=ids.run_id(request.run_id),
        step_id=from_public("step", request.step_id) if request.step_id else None,
        call_key=_key(request.call_key),
        tool_name=request.tool_name,
        arguments_json=request.arguments_json,
        embedding=without_nul(request.embedding),
        timezone=request.timezone or "UTC",
        conversation_id=ids.conversation_id(request.conversation_id),
        create_missing_block=request.create_missing_block,
        limits=file_limits(request),
    )


def restore_request(request: agent_pb.RestoreBlocksRequest, organization_id: UUID, user_id: UUID) -> RestoreRequest:
    """Raises InvalidArgument (INVALID_ID, CALL_KEY_INVALID)."""
    agent, key = ids.agent_id(request.agent_id), _key(request.request_id)
    return RestoreRequest(
        organization_id=organization_id,
        agent_id=agent,
        conversation_id=ids.conversation_id(request.conversation_id),
        versions=versions(request.versions),
        request_id=key,
        origin=Origin(actor_id=user_id, agent_id=agent, run_id=ids.run_id(request.run_id), call_key=key),
    )


def copy_request(request: agent_pb.CopyBlocksRequest, organization_id: UUID, user_id: UUID) -> CopyRequest:
    """Raises InvalidArgument (INVALID_ID, CALL_KEY_INVALID)."""
    target, key = ids.agent_id(request.target_agent_id), _key(request.request_id)
    return CopyRequest(
        organization_id=organization_id,
        source_agent_id=ids.agent_id(request.source_agent_id),
        source_conversation_id=ids.conversation_id(request.source_conversation_id),
        target_agent_id=target,
        versions=versions(request.versions),
        request_id=key,
        origin=Origin(actor_id=user_id, agent_id=target, call_key=key),
    )


def memory_message(memory: AgentMemory, folders: Sequence[Folder] = ()) -> agent_pb.AgentMemory:
    """An agent's memory on the wire, in a batch with its folders."""
    return agent_pb.AgentMemory(
        agent_id=to_public("agent", memory.agent_id),
        blocks=[block_message(block) for block in memory.blocks],
        archives=[archive_message(archive) for archive in memory.archives],
        passage_count=memory.passage_count,
        passage_tags=memory.passage_tags,
        isolated_block_ids=[to_public("block", one) for one in memory.isolated_block_ids],
        directories=map(directory_message, memory.directories),
        folders=map(folder_message, folders),
    )


def result_message(result: ToolResult) -> agent_pb.ApplyToolResponse:
    """A tool's result on the wire."""
    return agent_pb.ApplyToolResponse(
        tool_return=result.tool_return,
        is_error=result.is_error,
        changed_blocks=[block_message(block) for block in result.changed_blocks],
    )


def edit_message(edit: BlockEdit) -> agent_pb.BlockEdit:
    """A version that a run made, on the wire."""
    return agent_pb.BlockEdit(
        block_id=to_public("block", edit.block_id),
        version=edit.version,
        run_id=to_public("run", edit.run_id),
        step_id="" if edit.step_id is None else to_public("step", edit.step_id),
    )


def _key(text: str) -> str:
    if not 1 <= len(text) <= _LONGEST_CALL_KEY or "\x00" in text:
        raise InvalidArgument(
            f"a call key has 1 to {_LONGEST_CALL_KEY} characters and no NUL", reason="CALL_KEY_INVALID"
        )
    return text


def versions(given: Mapping[str, int]) -> dict[UUID, int]:
    """Version by block id. Raises InvalidArgument (INVALID_ID)."""
    return {ids.block_id(text): version for text, version in given.items()}
