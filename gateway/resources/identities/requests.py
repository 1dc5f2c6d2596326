"""Creating and changing identities."""

from typing import Any, Literal

from google.protobuf.field_mask_pb2 import FieldMask
from pydantic import StrictBool, StrictFloat, StrictInt, StrictStr

from gateway.rest.body import Body, Json, dump, given
from loci.agent.v1 import identity_service_pb2 as wire
from services.common.ids import to_public, uuid7

IdentityType = Literal["org", "user", "other"]


class IdentityProperty(Body):
    """Something known of an identity: `value` is of `type`, an object for `json`."""

    key: str
    value: StrictStr | StrictBool | StrictInt | StrictFloat | Json
    type: Literal["string", "number", "boolean", "json"]


class CreateIdentity(Body):
    """Body of identities.create and identities.upsert."""

    identifier_key: str
    name: str
    identity_type: IdentityType
    project_id: str | None = None
    agent_ids: list[str] | None = None
    block_ids: list[str] | None = None
    properties: list[IdentityProperty] | None = None


class UpdateIdentity(Body):
    """Body of identities.update: only what is sent changes; lists are sent whole."""

    identifier_key: str | None = None
    name: str | None = None
    identity_type: IdentityType | None = None
    agent_ids: list[str] | None = None
    block_ids: list[str] | None = None
    properties: list[IdentityProperty] | None = None


def create_request(body: CreateIdentity) -> wire.CreateIdentityRequest:
    """The request of CreateIdentity, with an id, so that it may be sent twice."""
    return wire.CreateIdentityRequest(identity_id=to_public("identity", uuid7()), identity=_draft(body))


def upsert_request(body: CreateIdentity) -> wire.UpsertIdentityRequest:
    """The request of UpsertIdentity: where the identity is there, what was sent changes."""
    return wire.UpsertIdentityRequest(
        identity_id=to_public("identity", uuid7()),
        identity=_draft(body),
        update_mask=_mask(body, leave={"identifier_key", "project_id"}),
    )


def update_request(identity_id: str, body: UpdateIdentity) -> wire.UpdateIdentityRequest | None:
    """The request of UpdateIdentity; None when nothing changes."""
    mask = _mask(body)
    if not mask.paths:
        return None
    return wire.UpdateIdentityRequest(identity_id=identity_id, identity=_draft(body), update_mask=mask)


def properties_request(identity_id: str, body: list[IdentityProperty]) -> wire.UpsertIdentityPropertiesRequest:
    """The request of UpsertIdentityProperties."""
    return wire.UpsertIdentityPropertiesRequest(identity_id=identity_id, properties_json=_json(body))


def _draft(body: CreateIdentity | UpdateIdentity) -> wire.IdentityDraft:
    sent = given(body)
    properties = sent.pop("properties", None)
    return wire.IdentityDraft(**sent, properties_json="" if properties is None else _json(properties))


def _mask(body: Body, leave: "set[str] | frozenset[str]" = frozenset()) -> FieldMask:
    names = given(body).keys() - leave
    return FieldMask(paths=sorted("properties_json" if name == "properties" else name for name in names))


def _json(properties: list[IdentityProperty]) -> str:
    values: list[Any] = [each.model_dump() for each in properties]
    return dump(values)
