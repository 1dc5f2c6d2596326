"""Identities <-> protobuf."""

from loci.agent.v1 import identity_pb2, identity_service_pb2
from services.agent.resources.identities.model import Identity, IdentityList, IdentitySettings, invalid, properties
from services.common.codec import Codec
from services.common.page_requests import page_by_id

_PER_PAGE = 50

identities = Codec(Identity, identity_pb2.Identity)
drafts = Codec(IdentitySettings, identity_pb2.Identity, refuse=invalid, parsers={"properties": properties})
_lists = Codec(IdentityList, identity_service_pb2.ListIdentitiesRequest, leave=("page",))


def identity_list(request: identity_service_pb2.ListIdentitiesRequest) -> IdentityList:
    """Returns which identities to list. Raises Refused, InvalidArgument."""
    return _lists.decode(request, page=page_by_id(request.page, "identity", _PER_PAGE))
