"""Creating and changing identities."""

from typing import Annotated, Any, Literal

from pydantic import StrictBool, StrictFloat, StrictInt, StrictStr

from gateway.rest.body import ENUM, Body, Json, dump
from gateway.rest.request_model import RequestModel
from loci.agent.v1 import identity_pb2
from loci.agent.v1 import identity_service_pb2 as wire
from services.common.fields import When
from services.common.ids import to_public, uuid7

IdentityType = Annotated[Literal["org", "user", "other"], ENUM]


class IdentityProperty(Body):
    """Something known of an identity: `value` is of `type`, an object for `json`."""

    key: str
    value: StrictStr | StrictBool | StrictInt | StrictFloat | Json
    type: Literal["string", "number", "boolean", "json"]


class CreateIdentity(RequestModel, of=identity_pb2.Identity, when=When.CREATION):
    """Body of identities.create and identities.upsert."""

    properties: list[IdentityProperty] | None = None


class UpdateIdentity(RequestModel, of=identity_pb2.Identity, when=When.CHANGE):
    """Body of identities.update: only what is sent changes; lists are sent whole."""

    properties: list[IdentityProperty] | None = None


def create_request(body: CreateIdentity) -> wire.CreateIdentityRequest:
    """Returns the request of CreateIdentity, with an id, so that it may be sent twice."""
    return wire.CreateIdentityRequest(identity_id=to_public("identity", uuid7()), identity=body.message())


def upsert_request(body: CreateIdentity) -> wire.UpsertIdentityRequest:
    """Returns the request of UpsertIdentity: where the identity is there, what was sent changes."""
    mask = body.mask(leave={"identifier_key", "project_id"})
    return wire.UpsertIdentityRequest(
        identity_id=to_public("identity", uuid7()), identity=body.message(), update_mask=mask
    )


def update_request(identity_id: str, body: UpdateIdentity) -> wire.UpdateIdentityRequest | None:
    """Returns the request of UpdateIdentity; None when nothing changes."""
    mask = body.mask()
    if not mask.paths:
        return None
    return wire.UpdateIdentityRequest(identity_id=identity_id, identity=body.message(), update_mask=mask)


def properties_request(identity_id: str, body: list[IdentityProperty]) -> wire.UpsertIdentityPropertiesRequest:
    """Returns the request of UpsertIdentityProperties."""
    values: list[Any] = [each.model_dump() for each in body]
    return wire.UpsertIdentityPropertiesRequest(identity_id=identity_id, properties_json=dump(values))
