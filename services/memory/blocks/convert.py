"""Blocks: protobuf to plain values and back."""

from collections.abc import Sequence

from loci.memory.v1 import block_pb2
from loci.memory.v1 import block_service_pb2 as block_service_pb
from services.common.errors import InvalidArgument
from services.common.ids import to_public, uuid7
from services.common.timestamps import timestamp
from services.memory import wire
from services.memory.blocks.model import (
    DEFAULT_LIMIT,
    Block,
    BlockById,
    BlockByLabel,
    BlockChanges,
    BlockDraft,
    BlockKey,
    BlockList,
    BlockVersion,
)
from services.memory.blocks.service import VersionKey
from services.memory.core.storable import without_nul


def block_key(key: block_service_pb.BlockKey) -> BlockKey:
    """Raises InvalidArgument (BLOCK_INVALID) for a key that names nothing."""
    match key.WhichOneof("key"):
        case "block_id":
            return BlockById(wire.block_id(key.block_id))
        case "agent_label":
            label = without_nul(key.agent_label.label)
            return BlockByLabel(wire.agent_id(key.agent_label.agent_id), label)
        case _:
            raise InvalidArgument("the key names no block: set block_id or agent_label", reason="BLOCK_INVALID")


def block_draft(draft: block_service_pb.BlockDraft, *, id_needed: bool = False) -> BlockDraft:
    """Raises InvalidArgument (INVALID_ID), Refused."""
    minted = wire.block_id(draft.id) if draft.id or id_needed else uuid7()
    changes = block_changes(draft, [field.name for field in draft.DESCRIPTOR.fields if field.name != "id"])
    return BlockDraft(id=minted, **changes)


def block_changes(draft: block_service_pb.BlockDraft, mask: Sequence[str]) -> BlockChanges:
    """New values of the fields in `mask`; unset ones get their default. Raises InvalidArgument, Refused."""
    changes: BlockChanges = {}
    for name in mask:
        match name:
            case "metadata_json":
                changes["metadata"] = wire.json_object(draft.metadata_json, "BLOCK_INVALID")
            case "tags":
                changes["tags"] = tuple(draft.tags)
            case "limit":
                changes["limit"] = draft.limit if draft.HasField("limit") else DEFAULT_LIMIT
            case (
                "description"
                | "project_id"
                | "template_name"
                | "template_id"
                | "base_template_id"
                | "deployment_id"
                | "entity_id"
            ):
                changes[name] = getattr(draft, name) if draft.HasField(name) else None
            case "label" | "value" | "read_only" | "hidden" | "is_template" | "preserve_on_migration":
                changes[name] = getattr(draft, name)
            case _:
                raise InvalidArgument(f"a block has no field {name!r} to update", reason="UPDATE_MASK_INVALID")
    return changes


def block_list(request: block_service_pb.ListBlocksRequest) -> BlockList:
    """The filters of a list of blocks."""
    return BlockList(
        label=wire.text(request, "label"),
        agent_id=wire.agent_id(request.agent_id) if request.HasField("agent_id") else None,
        label_search=wire.text(request, "label_search"),
        value_search=wire.text(request, "value_search"),
        description_search=wire.text(request, "description_search"),
        tags=tuple(without_nul(tag) for tag in request.tags),
        match_any_tag=request.match_any_tag,
        show_hidden=request.show_hidden,
        is_template=request.is_template if request.HasField("is_template") else None,
        template_name=wire.text(request, "template_name"),
        project_id=wire.text(request, "project_id"),
        deployment_id=wire.text(request, "deployment_id"),
        more_agents_than=request.more_agents_than if request.HasField("more_agents_than") else None,
        fewer_agents_than=request.fewer_agents_than if request.HasField("fewer_agents_than") else None,
        agent_counts=tuple(request.agent_counts),
        identity_ids=wire.identity_ids(request.identity_ids),
        identity_id=wire.identity_id(request.identity_id) if request.HasField("identity_id") else None,
    )


def version_key(request: block_service_pb.GetBlockVersionRequest | block_service_pb.RestoreBlockRequest) -> VersionKey:
    """A version's number or a time. Raises InvalidArgument (BLOCK_INVALID, TIME_INVALID)."""
    match request.WhichOneof("which"):
        case "version":
            return request.version
        case "as_of":
            time = wire.moment(request, "as_of")
            assert time is not None
            return time
        case _:
            raise InvalidArgument("which version is meant? set version or as_of", reason="BLOCK_INVALID")


def expected_version(
    request: block_service_pb.UpdateBlockRequest
    | block_service_pb.RestoreBlockRequest
    | block_service_pb.UndoBlockRequest
    | block_service_pb.RedoBlockRequest,
) -> int | None:
    """The version that the caller has seen, if it says so."""
    return request.expected_version if request.HasField("expected_version") else None


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
        metadata_json=wire.json_text(block.metadata),
        tags=block.tags,
        created_by_id=to_public("user", block.created_by_id),
        last_updated_by_id=to_public("user", block.last_updated_by_id),
        created_at=timestamp(block.created_at),
        updated_at=timestamp(block.updated_at),
        version=block.version,
        project_id=block.project_id,
        template_name=block.template_name,
        is_template=block.is_template,
        template_id=block.template_id,
        base_template_id=block.base_template_id,
        deployment_id=block.deployment_id,
        entity_id=block.entity_id,
        preserve_on_migration=block.preserve_on_migration,
    )


def version_message(version: BlockVersion) -> block_pb2.BlockVersion:
    """A row of history on the wire."""
    return block_pb2.BlockVersion(
        block_id=to_public("block", version.block_id),
        version=version.version,
        value=version.value,
        operation=block_pb2.BlockOperation.ValueType(version.operation),
        actor_id=to_public("user", version.actor_id),
        agent_id=wire.optional_id("agent", version.agent_id),
        run_id=wire.optional_id("run", version.run_id),
        step_id=wire.optional_id("step", version.step_id),
        call_key=version.call_key or "",
        created_at=timestamp(version.created_at),
        label=version.label,
        limit=version.limit,
        description=version.description,
        metadata_json=wire.json_text(version.metadata),
        restored_version=version.restored_version or 0,
    )
