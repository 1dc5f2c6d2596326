"""Identities <-> protobuf."""

from google.protobuf.field_mask_pb2 import FieldMask

from loci.agent.v1 import identity_pb2, identity_service_pb2
from services.agent.admin.identities import Identity, IdentityDraft, IdentityList, properties
from services.agent.convert.fields import ids, json_text, optional_text
from services.agent.storable import storable
from services.common.ids import to_public
from services.common.page_requests import page_by_id
from services.common.timestamps import timestamp

_PER_PAGE = 50


def identity_to_proto(identity: Identity) -> identity_pb2.Identity:
    """An identity as clients see it."""
    return identity_pb2.Identity(
        id=to_public("identity", identity.id),
        identifier_key=identity.identifier_key,
        name=identity.name,
        identity_type=identity.identity_type,
        properties_json=json_text(identity.properties),
        project_id=identity.project_id,
        agent_ids=[to_public("agent", each) for each in identity.agent_ids],
        block_ids=[to_public("block", each) for each in identity.block_ids],
        created_at=timestamp(identity.created_at),
        updated_at=timestamp(identity.updated_at),
    )


def identity_draft(wire: identity_service_pb2.IdentityDraft) -> IdentityDraft:
    """What a client sets. Raises Refused (IDENTITY_INVALID), InvalidArgument (INVALID_ID)."""
    return IdentityDraft(
        identifier_key=wire.identifier_key,
        name=wire.name,
        identity_type=wire.identity_type,
        properties=properties(wire.properties_json),
        project_id=wire.project_id if wire.HasField("project_id") else None,
        agent_ids=ids("agent", wire.agent_ids),
        block_ids=ids("block", wire.block_ids),
    )


def identity_mask(mask: FieldMask) -> tuple[str, ...]:
    """Names of the fields that an update changes."""
    return tuple(name.removesuffix("_json") for name in mask.paths)


def identity_list(request: identity_service_pb2.ListIdentitiesRequest) -> IdentityList:
    """Which identities to list. Raises Refused, InvalidArgument."""
    return IdentityList(
        page=page_by_id(request.page, "identity", _PER_PAGE),
        name=optional_text(request, "name"),
        identity_type=optional_text(request, "identity_type"),
        identifier_keys=tuple(map(storable, request.identifier_keys)),
        project_id=optional_text(request, "project_id"),
    )
