"""Organizations: tenants, for the operator; and users of one, for its admins. Under /v1 and /v1/admin."""

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from gateway.openapi.answers import returns
from gateway.openapi.schemas import array
from gateway.resources.access import requests as bodies
from gateway.resources.access.schemas import ORGANIZATION, USER
from gateway.rest.convert import Rest, to_rest
from gateway.rest.paging import FIRST_PAGE, paged
from gateway.rest.params import checked_id
from gateway.rest.responses import json_response
from gateway.rest.services import Loci
from loci.agent.v1 import access_service_pb2 as wire
from loci.common.v1.page_pb2 import PageRequest

_organizations = APIRouter(prefix="/orgs", tags=["organizations"])
_users = APIRouter(prefix="/users", tags=["users"])

_PER_PAGE = 50
OrganizationId = Annotated[str, Query(), checked_id("org")]
UserId = Annotated[str, Query(), checked_id("user")]
_After = Annotated[str | None, Query(description="An id: the page begins after this object.")]


@_organizations.get("")
@returns(array(ORGANIZATION))
@paged(_PER_PAGE, names="after limit", cursor=_After)
async def list_organizations(loci: Loci, page: PageRequest = FIRST_PAGE) -> Response:
    """Returns a page of organizations, oldest first; the caller's own to all but the operator."""
    request = wire.ListOrganizationsRequest(page=page)
    response = await loci.peers.call(loci.peers.access.ListOrganizations, request)
    return json_response([_organization(one) for one in response.organizations])


@_organizations.post("")
@returns(ORGANIZATION)
async def create_organization(body: bodies.CreateOrganization, loci: Loci) -> Response:
    """Creates a tenant, with one user of the same UUID. For the operator."""
    request = wire.CreateOrganizationRequest(organization=body.message())
    created = await loci.peers.call(loci.peers.access.CreateOrganization, request)
    return json_response(_organization(created.organization))


@_organizations.patch("")
@returns(ORGANIZATION)
async def update_organization(org_id: OrganizationId, body: bodies.UpdateOrganization, loci: Loci) -> Response:
    """Renames it."""
    request = wire.UpdateOrganizationRequest(
        organization_id=org_id, organization=body.message(), update_mask=body.mask()
    )
    changed = await loci.peers.call(loci.peers.access.UpdateOrganization, request)
    return json_response(_organization(changed.organization))


@_organizations.delete("")
@returns(ORGANIZATION)
async def delete_organization(org_id: OrganizationId, loci: Loci) -> Response:
    """Revokes its keys at once and deletes all it has later. For the operator."""
    request = wire.DeleteOrganizationRequest(organization_id=org_id)
    gone = await loci.peers.call(loci.peers.access.DeleteOrganization, request)
    return json_response(_organization(gone.organization))


@_users.get("")
@returns(array(USER))
@paged(_PER_PAGE, names="after limit", cursor=_After)
async def list_users(loci: Loci, page: PageRequest = FIRST_PAGE) -> Response:
    """Returns a page of users, oldest first; of all organizations to the operator."""
    request = wire.ListUsersRequest(page=page)
    response = await loci.peers.call(loci.peers.access.ListUsers, request)
    return json_response([_user(one) for one in response.users])


@_users.post("")
@returns(USER)
async def create_user(body: bodies.CreateUser, loci: Loci) -> Response:
    """Creates a user."""
    created = await loci.peers.call(loci.peers.access.CreateUser, wire.CreateUserRequest(user=body.message()))
    return json_response(_user(created.user))


@_users.put("")
@returns(USER)
async def update_user(body: bodies.UpdateUser, loci: Loci) -> Response:
    """Renames it."""
    request = wire.UpdateUserRequest(user_id=body.id, user=body.message(), update_mask=body.mask(leave=("id",)))
    changed = await loci.peers.call(loci.peers.access.UpdateUser, request)
    return json_response(_user(changed.user))


@_users.delete("")
@returns(USER)
async def delete_user(user_id: UserId, loci: Loci) -> Response:
    """Deletes a user and revokes its keys; what it made stays."""
    gone = await loci.peers.call(loci.peers.access.DeleteUser, wire.DeleteUserRequest(user_id=user_id))
    return json_response(_user(gone.user) | {"is_deleted": True})


def _organization(organization: wire.Organization) -> Rest:
    return to_rest(organization) | {"privileged_tools": False}


def _user(user: wire.User) -> Rest:
    # When it was renamed is not kept.
    rest = to_rest(user)
    return rest | {"updated_at": rest["created_at"], "is_deleted": False}


router = APIRouter()
for _prefix in ("", "/admin"):
    router.include_router(_organizations, prefix=_prefix)
    router.include_router(_users, prefix=_prefix)
