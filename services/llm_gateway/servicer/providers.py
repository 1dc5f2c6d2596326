"""loci.llm.v1.ProviderService."""

from typing import Any
from uuid import UUID

from loci.llm.v1 import provider_service_pb2 as provider_pb
from loci.llm.v1 import provider_service_pb2_grpc as provider_grpc
from services.common.context import current
from services.common.ids import from_public
from services.common.purging import organization_to_purge
from services.llm_gateway.configuration.admin import ProviderAdmin
from services.llm_gateway.convert.providers import change_of, draft_of, provider_message
from services.llm_gateway.errors import ProviderInvalid

# For checks of what is not stored; it appears in messages.
_UNNAMED = "unnamed"


class ProviderServicer(provider_grpc.ProviderServiceServicer):
    """loci.llm.v1.ProviderService."""

    def __init__(self, admin: ProviderAdmin) -> None:
        self._admin = admin

    async def CreateProvider(
        self, request: provider_pb.CreateProviderRequest, context: Any
    ) -> provider_pb.CreateProviderResponse:
        caller, draft = current(), draft_of(request.settings, request.name)
        made = await self._admin.create(caller.organization_id, caller.user_id, _id(request.id), draft)
        return provider_pb.CreateProviderResponse(provider=provider_message(made))

    async def GetProvider(
        self, request: provider_pb.GetProviderRequest, context: Any
    ) -> provider_pb.GetProviderResponse:
        found = await self._admin.get(current().organization_id, _id(request.id))
        return provider_pb.GetProviderResponse(provider=provider_message(found))

    async def ListProviders(
        self, request: provider_pb.ListProvidersRequest, context: Any
    ) -> provider_pb.ListProvidersResponse:
        found = await self._admin.list(current().organization_id, request.name, request.provider_type)
        return provider_pb.ListProvidersResponse(providers=map(provider_message, found))

    async def UpdateProvider(
        self, request: provider_pb.UpdateProviderRequest, context: Any
    ) -> provider_pb.UpdateProviderResponse:
        version = request.version if request.HasField("version") else None
        change = change_of(request.change)
        changed = await self._admin.update(current().organization_id, _id(request.id), change, version)
        return provider_pb.UpdateProviderResponse(provider=provider_message(changed))

    async def DeleteProvider(
        self, request: provider_pb.DeleteProviderRequest, context: Any
    ) -> provider_pb.DeleteProviderResponse:
        await self._admin.delete(current().organization_id, _id(request.id))
        return provider_pb.DeleteProviderResponse()

    async def CheckProvider(
        self, request: provider_pb.CheckProviderRequest, context: Any
    ) -> provider_pb.CheckProviderResponse:
        organization_id = current().organization_id
        match request.WhichOneof("target"):
            case "id":
                count = await self._admin.check(organization_id, _id(request.id))
            case "settings":
                count = await self._admin.check_draft(organization_id, draft_of(request.settings, _UNNAMED))
            case None:
                raise ProviderInvalid("settings: nothing to check was given.")
        return provider_pb.CheckProviderResponse(model_count=count)

    async def RefreshProvider(
        self, request: provider_pb.RefreshProviderRequest, context: Any
    ) -> provider_pb.RefreshProviderResponse:
        refreshed = await self._admin.refresh(current().organization_id, _id(request.id))
        return provider_pb.RefreshProviderResponse(provider=provider_message(refreshed))

    async def PurgeOrganization(
        self, request: provider_pb.PurgeOrganizationRequest, context: Any
    ) -> provider_pb.PurgeOrganizationResponse:
        done = await self._admin.purge_organization(organization_to_purge())
        return provider_pb.PurgeOrganizationResponse(done=done)


def _id(text: str) -> UUID:
    return from_public("provider", text)
