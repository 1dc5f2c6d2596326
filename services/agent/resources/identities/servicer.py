"""IdentityService: parse, call, convert. The tenant and the user come from the verified call context."""

from collections.abc import Callable
from typing import Any

from loci.agent.v1 import identity_service_pb2 as wire
from loci.agent.v1 import identity_service_pb2_grpc
from services.agent.resources.agents.convert import agent_to_proto
from services.agent.resources.agents.service import Agents
from services.agent.resources.identities.convert import drafts, identities, identity_list
from services.agent.resources.identities.model import properties
from services.agent.resources.identities.service import Identities
from services.common.context import current
from services.common.ids import from_public, uuid7


class IdentityServicer(identity_service_pb2_grpc.IdentityServiceServicer):
    """loci.agent.v1.IdentityService. `on_deleted` is called when there is something to clear away."""

    def __init__(self, identities: Identities, agents: Agents, on_deleted: Callable[[], None]) -> None:
        self._identities = identities
        self._agents = agents
        self._on_deleted = on_deleted

    async def CreateIdentity(self, request: wire.CreateIdentityRequest, context: Any) -> wire.CreateIdentityResponse:
        """Creates an identity: its blocks first, its row last."""
        identity_id = from_public("identity", request.identity_id) if request.identity_id else uuid7()
        identity = await self._identities.create(current(), identity_id, drafts.draft(request.identity).values)
        return wire.CreateIdentityResponse(identity=identities.encode(identity))

    async def GetIdentity(self, request: wire.GetIdentityRequest, context: Any) -> wire.GetIdentityResponse:
        """Returns one identity."""
        identity_id = from_public("identity", request.identity_id)
        identity = await self._identities.get(current().organization_id, identity_id)
        return wire.GetIdentityResponse(identity=identities.encode(identity))

    async def ListIdentities(self, request: wire.ListIdentitiesRequest, context: Any) -> wire.ListIdentitiesResponse:
        """Returns one page."""
        page = await self._identities.list(current().organization_id, identity_list(request))
        return wire.ListIdentitiesResponse(
            identities=map(identities.encode, page.items), next_page_token=page.next_token
        )

    async def CountIdentities(self, request: wire.CountIdentitiesRequest, context: Any) -> wire.CountIdentitiesResponse:
        """Returns all of the tenant."""
        return wire.CountIdentitiesResponse(identities=await self._identities.count(current().organization_id))

    async def UpdateIdentity(self, request: wire.UpdateIdentityRequest, context: Any) -> wire.UpdateIdentityResponse:
        """Changes the fields of the mask."""
        identity_id = from_public("identity", request.identity_id)
        identity = await self._identities.update(
            current(), identity_id, drafts.draft(request.identity, request.update_mask.paths)
        )
        return wire.UpdateIdentityResponse(identity=identities.encode(identity))

    async def UpsertIdentity(self, request: wire.UpsertIdentityRequest, context: Any) -> wire.UpsertIdentityResponse:
        """Changes the one that has the key, or creates it."""
        identity_id = from_public("identity", request.identity_id) if request.identity_id else uuid7()
        settings, names = drafts.draft(request.identity).values, drafts.mask(request.update_mask.paths)
        identity = await self._identities.upsert(current(), identity_id, settings, names)
        return wire.UpsertIdentityResponse(identity=identities.encode(identity))

    async def DeleteIdentity(self, request: wire.DeleteIdentityRequest, context: Any) -> wire.DeleteIdentityResponse:
        """Deletes it at once; memory forgets it soon."""
        await self._identities.delete(current(), from_public("identity", request.identity_id))
        self._on_deleted()
        return wire.DeleteIdentityResponse()

    async def UpsertIdentityProperties(
        self, request: wire.UpsertIdentityPropertiesRequest, context: Any
    ) -> wire.UpsertIdentityPropertiesResponse:
        """Sets properties by their keys."""
        identity_id = from_public("identity", request.identity_id)
        identity = await self._identities.upsert_properties(current(), identity_id, properties(request.properties_json))
        return wire.UpsertIdentityPropertiesResponse(identity=identities.encode(identity))

    async def AttachIdentity(self, request: wire.AttachIdentityRequest, context: Any) -> wire.AttachIdentityResponse:
        """Attaches an identity to an agent."""
        agent_id, identity_id = from_public("agent", request.agent_id), from_public("identity", request.identity_id)
        await self._identities.attach(current().organization_id, agent_id, identity_id)
        described = await self._agents.get(current().organization_id, agent_id)
        return wire.AttachIdentityResponse(agent=agent_to_proto(described))

    async def DetachIdentity(self, request: wire.DetachIdentityRequest, context: Any) -> wire.DetachIdentityResponse:
        """Detaches an identity from an agent."""
        agent_id, identity_id = from_public("agent", request.agent_id), from_public("identity", request.identity_id)
        await self._identities.detach(current().organization_id, agent_id, identity_id)
        described = await self._agents.get(current().organization_id, agent_id)
        return wire.DetachIdentityResponse(agent=agent_to_proto(described))
