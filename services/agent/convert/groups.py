"""Groups <-> protobuf."""

from google.protobuf.field_mask_pb2 import FieldMask

from loci.agent.v1 import group_pb2, group_service_pb2
from services.agent.admin.groups import Group, GroupDraft, GroupList, manager_settings
from services.agent.convert.fields import ids, json_text, optional_id, optional_text
from services.common.ids import from_public, to_public
from services.common.page_requests import page_by_id
from services.common.timestamps import timestamp

_PER_PAGE = 50


def group_to_proto(group: Group) -> group_pb2.Group:
    """A group as clients see it."""
    settings = group.settings
    manager = settings.manager_agent_id
    return group_pb2.Group(
        id=to_public("group", group.id),
        description=settings.description,
        agent_ids=[to_public("agent", each) for each in settings.agent_ids],
        manager_type=settings.manager_type,
        manager_agent_id="" if manager is None else to_public("agent", manager),
        manager_settings_json=json_text(settings.manager_settings),
        shared_block_ids=[to_public("block", each) for each in settings.shared_block_ids],
        hidden=settings.hidden,
        project_id=settings.project_id,
        template_id=settings.template_id or "",
        base_template_id=settings.base_template_id or "",
        deployment_id=settings.deployment_id or "",
        created_at=timestamp(group.created_at),
        updated_at=timestamp(group.updated_at),
    )


def group_draft(wire: group_service_pb2.GroupDraft) -> GroupDraft:
    """What a client sets. Raises Refused (GROUP_INVALID), InvalidArgument (INVALID_ID)."""
    return GroupDraft(
        description=wire.description,
        agent_ids=ids("agent", wire.agent_ids),
        manager_type=wire.manager_type or "round_robin",
        manager_agent_id=from_public("agent", wire.manager_agent_id) if wire.manager_agent_id else None,
        manager_settings=manager_settings(wire.manager_settings_json),
        shared_block_ids=ids("block", wire.shared_block_ids),
        hidden=wire.hidden,
        project_id=wire.project_id if wire.HasField("project_id") else None,
        template_id=wire.template_id or None,
        base_template_id=wire.base_template_id or None,
        deployment_id=wire.deployment_id or None,
    )


def group_mask(mask: FieldMask) -> tuple[str, ...]:
    """Names of the fields that an update changes."""
    return tuple(name.removesuffix("_json") for name in mask.paths)


def group_list(request: group_service_pb2.ListGroupsRequest) -> GroupList:
    """Which groups to list. Raises Refused, InvalidArgument."""
    return GroupList(
        page=page_by_id(request.page, "group", _PER_PAGE),
        manager_type=optional_text(request, "manager_type"),
        project_id=optional_text(request, "project_id"),
        deployment_id=optional_text(request, "deployment_id"),
        agent_id=optional_id(request, "agent_id", "agent"),
        show_hidden=request.show_hidden,
    )
