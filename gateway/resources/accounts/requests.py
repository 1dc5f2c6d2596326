"""Client-side tokens, API keys, organizations and users."""

from typing import Annotated, Literal

from pydantic import Field

from gateway.rest.body import Body, deprecated
from gateway.rest.params import Moment, checked_id
from loci.agent.v1 import access_service_pb2 as wire
from services.common.timestamps import timestamp

Access = Literal["read_messages", "write_messages", "read_agent", "write_agent"]
Role = Literal["admin", "developer", "agent-only", "read-only"]
_AgentId = Annotated[str, checked_id("agent")]
_UserId = Annotated[str, checked_id("user")]
_OrganizationId = Annotated[str, checked_id("org")]
_Name = Annotated[str, Field(min_length=1, max_length=256)]


class AgentPolicy(Body):
    """What may be done with one agent."""

    type: Literal["agent"]
    id: _AgentId
    access: Annotated[list[Access], Field(min_length=1)]


class CreateToken(Body):
    """Body of POST /v1/client-side-access-tokens."""

    hostname: Annotated[str, Field(min_length=1, max_length=2_048)]
    policy: Annotated[list[AgentPolicy], Field(min_length=1, max_length=100)]
    expires_at: Moment | None = Field(None, description="Default: in 5 minutes.")

    def request(self) -> wire.CreateClientTokenRequest:
        """Returns the request."""
        policy = [wire.AgentAccess(agent_id=each.id, access=each.access) for each in self.policy]
        return wire.CreateClientTokenRequest(
            hostname=self.hostname, policy=policy, expires_at=timestamp(self.expires_at)
        )


class CreateApiKey(Body):
    """Body of POST /v1/api-keys/."""

    name: _Name
    role: Role = "developer"
    agent_ids: Annotated[list[_AgentId], Field(max_length=100)] = Field(
        [], description="Of the role agent-only: the agents it may reach; none: all."
    )
    requests_per_minute: Annotated[int, Field(ge=1, le=1_000_000)] | None = Field(
        None, description="Default: LOCI_RATE_LIMIT."
    )
    expires_at: Moment | None = Field(None, description="Default: never.")
    user_id: _UserId | None = Field(
        None, description="Default: who asks. The operator may name a user of another organization."
    )

    def request(self) -> wire.CreateApiKeyRequest:
        """Returns the request."""
        key = wire.ApiKey(
            name=self.name,
            role=wire.Role.Value(f"ROLE_{self.role.upper().replace('-', '_')}"),
            agent_ids=self.agent_ids,
            requests_per_minute=self.requests_per_minute,
            expires_at=timestamp(self.expires_at),
            user_id=self.user_id or "",
        )
        return wire.CreateApiKeyRequest(key=key)


class CreateOrganization(Body):
    """Body of POST /v1/orgs/."""

    name: _Name | None = Field(None, description="Default: a random one.")
    privileged_tools: bool | None = deprecated()


class UpdateOrganization(Body):
    """Body of PATCH /v1/orgs/."""

    name: _Name
    privileged_tools: bool | None = deprecated()


class CreateUser(Body):
    """Body of POST /v1/users/."""

    name: _Name
    organization_id: _OrganizationId | None = Field(None, description="Default: that of who asks.")


class UpdateUser(Body):
    """Body of PUT /v1/users/. A user stays in its organization."""

    id: _UserId
    name: _Name
