"""Groups <-> protobuf."""

from loci.agent.v1 import group_pb2, group_service_pb2
from services.agent.resources.groups.model import Group, GroupList, GroupSettings, invalid
from services.common.codec import Codec
from services.common.page_requests import page_by_id

_PER_PAGE = 50

groups = Codec(Group, group_pb2.Group)
drafts = Codec(GroupSettings, group_pb2.Group, refuse=invalid)
_lists = Codec(GroupList, group_service_pb2.ListGroupsRequest, leave=("page",))


def group_list(request: group_service_pb2.ListGroupsRequest) -> GroupList:
    """Returns which groups to list. Raises Refused, InvalidArgument."""
    return _lists.decode(request, page=page_by_id(request.page, "group", _PER_PAGE))
