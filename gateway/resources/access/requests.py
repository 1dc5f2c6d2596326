"""Client-side tokens, API keys, organizations and users."""

from typing import Annotated, Literal

from pydantic import Field

from gateway.rest.body import Body, deprecated
from gateway.rest.params import checked_id
from gateway.rest.request_model import RequestModel
from loci.agent.v1 import access_service_pb2 as wire
from services.common.fields import When

Access = Literal["read_messages", "write_messages", "read_agent", "write_agent"]


class AgentPolicy(Body):
    """The access to one agent."""

    type: Literal["agent"]
    id: Annotated[str, checked_id("agent")]
    access: Annotated[list[Access], Field(min_length=1)]


class CreateToken(RequestModel, of=wire.ClientToken, when=When.CREATION):
    """Body of POST /v1/client-side-access-tokens."""

    policy: Annotated[list[AgentPolicy], Field(min_length=1, max_length=100)]

    def request(self) -> wire.CreateClientTokenRequest:
        """Returns the request."""
        policy = [wire.AgentAccess(agent_id=each.id, access=each.access) for each in self.policy]
        return wire.CreateClientTokenRequest(token=self.message(policy=policy))


class CreateApiKey(RequestModel, of=wire.ApiKey, when=When.CREATION):
    """Body of POST /v1/api-keys/."""


class CreateOrganization(RequestModel, of=wire.Organization, when=When.CREATION):
    """Body of POST /v1/orgs/."""

    privileged_tools: bool | None = deprecated()


class UpdateOrganization(RequestModel, of=wire.Organization, when=When.CHANGE):
    """Body of PATCH /v1/orgs/."""

    name: str
    privileged_tools: bool | None = deprecated()


class CreateUser(RequestModel, of=wire.User, when=When.CREATION):
    """Body of POST /v1/users/."""


class UpdateUser(RequestModel, of=wire.User, when=When.CHANGE):
    """Body of PUT /v1/users/. A user stays in its organization."""

    id: Annotated[str, checked_id("user")]
    name: str
