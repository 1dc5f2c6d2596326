"""Protobuf to plain values and back."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import orjson
from google.protobuf.timestamp_pb2 import Timestamp

from loci.memory.v1 import agent_memory_service_pb2 as agent_pb
from loci.memory.v1 import block_pb2, passage_pb2
from loci.memory.v1 import block_service_pb2 as block_service_pb
from loci.memory.v1 import passage_service_pb2 as passage_service_pb
from services.common.errors import InvalidArgument
from services.common.ids import from_public, to_public, uuid7
from services.common.paging import Page
from services.memory.blocks import without_nul
from services.memory.lists import BlockList, checked_size
from services.memory.model import (
    DEFAULT_LIMIT,
    AgentMemory,
    Archive,
    Block,
    BlockChanges,
    BlockDraft,
    BlockVersion,
    JsonObject,
    Origin,
    Passage,
    PassageDraft,
    Refused,
    ToolCall,
    ToolResult,
)
from services.memory.passages import PassageFilter, PassageQuery
from services.memory.ports import BlockById, BlockByLabel, BlockKey
from services.memory.ports_copies import CopyRequest, RestoreRequest
from services.memory.search import Hit

_LONGEST_CALL_KEY = 200


def agent_id(text: str) -> UUID:
    """Of `agent-<uuid>`."""
    return from_public("agent", text)


def block_id(text: str) -> UUID:
    """Of `block-<uuid>`."""
    return from_public("block", text)


def passage_id(text: str) -> UUID:
    """Of `passage-<uuid>`."""
    return from_public("passage", text)


def conversation_id(text: str) -> UUID | None:
    """Of `conv-<uuid>`; None where none is given."""
    return needed_conversation_id(text) if text else None


def needed_conversation_id(text: str) -> UUID:
    """Of `conv-<uuid>`."""
    return from_public("conv", text)


def block_key(key: block_service_pb.BlockKey) -> BlockKey:
    """Raises InvalidArgument (BLOCK_INVALID) for a key that names nothing."""
    match key.WhichOneof("key"):
        case "block_id":
            return BlockById(block_id(key.block_id))
        case "agent_label":
            label = without_nul(key.agent_label.label)
            return BlockByLabel(agent_id(key.agent_label.agent_id), label)
        case _:
            raise InvalidArgument("the key names no block: set block_id or agent_label", reason="BLOCK_INVALID")


def block_draft(draft: block_service_pb.BlockDraft, *, id_needed: bool = False) -> BlockDraft:
    """Raises InvalidArgument (INVALID_ID), Refused."""
    minted = block_id(draft.id) if draft.id or id_needed else uuid7()
    changes = block_changes(draft, [field.name for field in draft.DESCRIPTOR.fields if field.name != "id"])
    return BlockDraft(id=minted, **changes)


def block_changes(draft: block_service_pb.BlockDraft, mask: Sequence[str]) -> BlockChanges:
    """New values of the fields in `mask`; unset ones get their default. Raises InvalidArgument, Refused."""
    changes: BlockChanges = {}
    for name in mask:
        match name:
            case "metadata_json":
                changes["metadata"] = _json_object(draft.metadata_json, "BLOCK_INVALID")
            case "tags":
                changes["tags"] = tuple(draft.tags)
            case "limit":
                changes["limit"] = draft.limit if draft.HasField("limit") else DEFAULT_LIMIT
            case "description" | "project_id" | "template_name":
                changes[name] = getattr(draft, name) if draft.HasField(name) else None
            case "label" | "value" | "read_only" | "hidden" | "is_template":
                changes[name] = getattr(draft, name)
            case _:
                raise InvalidArgument(f"a block has no field {name!r} to update", reason="UPDATE_MASK_INVALID")
    return changes


def block_list(request: block_service_pb.ListBlocksRequest) -> BlockList:
    """The filters of a list of blocks."""
    return BlockList(
        label=_text(request, "label"),
        agent_id=agent_id(request.agent_id) if request.HasField("agent_id") else None,
        label_search=_text(request, "label_search"),
        value_search=_text(request, "value_search"),
        description_search=_text(request, "description_search"),
        tags=tuple(without_nul(tag) for tag in request.tags),
        show_hidden=request.show_hidden,
        is_template=request.is_template if request.HasField("is_template") else None,
    )


def page(request: Any, prefix: str, default: int) -> Page:
    """The page that a list request asks for. Raises InvalidArgument (INVALID_ID), Refused."""
    return Page(
        size=checked_size(request.page_size, default),
        token=request.page_token,
        after=from_public(prefix, request.after) if request.HasField("after") else None,
        before=from_public(prefix, request.before) if request.HasField("before") else None,
        ascending=not request.descending,
    )


def passage_draft(draft: passage_service_pb.PassageDraft) -> PassageDraft:
    """Raises InvalidArgument (INVALID_ID), Refused (PASSAGE_INVALID)."""
    return PassageDraft(
        id=from_public("passage", draft.id) if draft.id else uuid7(),
        text=draft.text,
        tags=tuple(draft.tags),
        metadata=_json_object(draft.metadata_json, "PASSAGE_INVALID"),
        created_at=_time(draft, "created_at"),
    )


def passage_query(request: passage_service_pb.SearchPassagesRequest) -> PassageQuery:
    """What a search asks for."""
    return PassageQuery(
        text=request.query,
        top_k=request.top_k or 5,
        filter=PassageFilter(
            tags=tuple(request.tags),
            match_all_tags=request.match_all_tags,
            start=_time(request, "start_time"),
            end=_time(request, "end_time"),
        ),
    )


def tool_call(request: agent_pb.ApplyToolRequest, organization_id: UUID, user_id: UUID) -> ToolCall:
    """Raises InvalidArgument (INVALID_ID, CALL_KEY_INVALID)."""
    return ToolCall(
        organization_id=organization_id,
        user_id=user_id,
        agent_id=agent_id(request.agent_id),
        run_id=_run_id(request.run_id),
        step_id=from_public("step", request.step_id) if request.step_id else None,
        call_key=_key(request.call_key),
        tool_name=request.tool_name,
        arguments_json=request.arguments_json,
        embedding=without_nul(request.embedding),
        timezone=request.timezone or "UTC",
        conversation_id=conversation_id(request.conversation_id),
        create_missing_block=request.create_missing_block,
    )


def restore_request(request: agent_pb.RestoreBlocksRequest, organization_id: UUID, user_id: UUID) -> RestoreRequest:
    """Raises InvalidArgument (INVALID_ID, CALL_KEY_INVALID)."""
    agent, key = agent_id(request.agent_id), _key(request.request_id)
    return RestoreRequest(
        organization_id=organization_id,
        agent_id=agent,
        conversation_id=conversation_id(request.conversation_id),
        versions=_versions(request.versions),
        request_id=key,
        origin=Origin(actor_id=user_id, agent_id=agent, run_id=_run_id(request.run_id), call_key=key),
    )


def copy_request(request: agent_pb.CopyBlocksRequest, organization_id: UUID, user_id: UUID) -> CopyRequest:
    """Raises InvalidArgument (INVALID_ID, CALL_KEY_INVALID)."""
    target, key = agent_id(request.target_agent_id), _key(request.request_id)
    return CopyRequest(
        organization_id=organization_id,
        source_agent_id=agent_id(request.source_agent_id),
        source_conversation_id=conversation_id(request.source_conversation_id),
        target_agent_id=target,
        versions=_versions(request.versions),
        request_id=key,
        origin=Origin(actor_id=user_id, agent_id=target, call_key=key),
    )


def block_message(block: Block) -> block_pb2.Block:
    """A block on the wire."""
    return block_pb2.Block(
        id=to_public("block", block.id),
        label=block.label,
        value=block.value,
        limit=block.limit,
        description=block.description,
        read_only=block.read_only,
        hidden=block.hidden,
        metadata_json=_json(block.metadata),
        tags=block.tags,
        created_by_id=to_public("user", block.created_by_id),
        last_updated_by_id=to_public("user", block.last_updated_by_id),
        created_at=_timestamp(block.created_at),
        updated_at=_timestamp(block.updated_at),
        version=block.version,
        project_id=block.project_id,
        template_name=block.template_name,
        is_template=block.is_template,
    )


def version_message(version: BlockVersion) -> block_pb2.BlockVersion:
    """A row of history on the wire."""
    return block_pb2.BlockVersion(
        block_id=to_public("block", version.block_id),
        version=version.version,
        value=version.value,
        operation=block_pb2.BlockOperation.ValueType(version.operation),
        actor_id=to_public("user", version.actor_id),
        agent_id=_optional_id("agent", version.agent_id),
        run_id=_optional_id("run", version.run_id),
        step_id=_optional_id("step", version.step_id),
        call_key=version.call_key or "",
        created_at=_timestamp(version.created_at),
    )


def archive_message(archive: Archive) -> passage_pb2.Archive:
    """An archive on the wire."""
    return passage_pb2.Archive(
        id=to_public("archive", archive.id),
        name=archive.name,
        description=archive.description,
        embedding="" if archive.model is None else archive.model.handle,
        dimensions=0 if archive.model is None else archive.model.dimensions,
        metadata_json=_json(archive.metadata),
        created_at=_timestamp(archive.created_at),
        updated_at=_timestamp(archive.updated_at),
        created_by_id=to_public("user", archive.created_by_id),
    )


def passage_message(passage: Passage) -> passage_pb2.Passage:
    """A passage on the wire."""
    return passage_pb2.Passage(
        id=to_public("passage", passage.id),
        archive_id=to_public("archive", passage.archive_id),
        text=passage.text,
        tags=passage.tags,
        metadata_json=_json(passage.metadata),
        created_by_id=to_public("user", passage.created_by_id),
        created_at=_timestamp(passage.created_at),
        updated_at=_timestamp(passage.updated_at),
        embedding=passage.embedding or "",
    )


def hit_message(hit: Hit) -> passage_pb2.PassageHit:
    """A found passage on the wire."""
    return passage_pb2.PassageHit(
        passage=passage_message(hit.passage),
        score=hit.score,
        vector_score=hit.vector_score,
        text_score=hit.text_score,
    )


def memory_message(memory: AgentMemory) -> agent_pb.AgentMemory:
    """An agent's memory on the wire."""
    return agent_pb.AgentMemory(
        agent_id=to_public("agent", memory.agent_id),
        blocks=[block_message(block) for block in memory.blocks],
        archives=[archive_message(archive) for archive in memory.archives],
        passage_count=memory.passage_count,
        passage_tags=memory.passage_tags,
        isolated_block_ids=[to_public("block", one) for one in memory.isolated_block_ids],
    )


def result_message(result: ToolResult) -> agent_pb.ApplyToolResponse:
    """A tool's result on the wire."""
    return agent_pb.ApplyToolResponse(
        tool_return=result.tool_return,
        is_error=result.is_error,
        changed_blocks=[block_message(block) for block in result.changed_blocks],
    )


def _key(text: str) -> str:
    if not 1 <= len(text) <= _LONGEST_CALL_KEY or "\x00" in text:
        raise InvalidArgument(
            f"a call key has 1 to {_LONGEST_CALL_KEY} characters and no NUL", reason="CALL_KEY_INVALID"
        )
    return text


def _run_id(text: str) -> UUID | None:
    return from_public("run", text) if text else None


def _versions(versions: Mapping[str, int]) -> dict[UUID, int]:
    return {block_id(text): version for text, version in versions.items()}


def _json_object(text: str, reason: str) -> JsonObject:
    if not text:
        return {}
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise Refused(reason, f"metadata is not valid JSON: {error}") from None
    if not isinstance(value, dict):
        raise Refused(reason, "metadata must be a JSON object")
    return value


def _json(value: JsonObject) -> str:
    return orjson.dumps(value).decode()


def _text(request: Any, name: str) -> str | None:
    return without_nul(getattr(request, name)) if request.HasField(name) else None


def _time(message: Any, name: str) -> datetime | None:
    if not message.HasField(name):
        return None
    try:
        moment: datetime = getattr(message, name).ToDatetime(tzinfo=UTC)
    except (ValueError, OverflowError):
        raise InvalidArgument(f"{name} is not a time between the years 1 and 9999", reason="TIME_INVALID") from None
    return moment


def _timestamp(moment: datetime) -> Timestamp:
    timestamp = Timestamp()
    timestamp.FromDatetime(moment)
    return timestamp


def _optional_id(prefix: str, value: UUID | None) -> str:
    return "" if value is None else to_public(prefix, value)
