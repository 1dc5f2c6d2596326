"""loci.llm.v1.ProviderService."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID

import orjson

from loci.llm.v1 import model_pb2, provider_pb2
from loci.llm.v1 import provider_service_pb2 as provider_pb
from loci.llm.v1 import provider_service_pb2_grpc as provider_grpc
from services.common.codec import Codec
from services.common.context import current
from services.common.core.drafts import Draft
from services.common.ids import from_public, to_public
from services.common.purge import organization_to_purge
from services.llm_gateway.core.errors import ProviderInvalid
from services.llm_gateway.core.provider_config import NO_KEY
from services.llm_gateway.core.provider_types import TYPES
from services.llm_gateway.providers.entries import ProviderEntry
from services.llm_gateway.providers.model import ProviderSettings
from services.llm_gateway.providers.service import ProviderService

# For checks of what is not stored; it appears in messages.
_UNNAMED = "unnamed"


def _options(text: str) -> Mapping[str, Any]:
    try:
        value = orjson.loads(text or "{}")
    except orjson.JSONDecodeError:
        value = None
    if not isinstance(value, dict):
        raise ProviderInvalid("options: not a JSON object.")
    return value


_DRAFTS = Codec(ProviderSettings, provider_pb2.Provider, parsers={"options": _options})


def settings_of(message: provider_pb2.Provider) -> ProviderSettings:
    """Returns the settings of a new provider. Raises ProviderInvalid for options that are no JSON object."""
    settings = _DRAFTS.draft(message).values
    return replace(settings, api_key=settings.api_key.strip(), access_key=settings.access_key.strip())


def draft_of(message: provider_pb2.Provider, paths: Iterable[str]) -> Draft[ProviderSettings]:
    """Returns the new values of the fields in a mask. Raises ProviderInvalid for options that are no JSON object, and
    InvalidArgument (UPDATE_MASK_INVALID).
    """
    draft = _DRAFTS.draft(message, paths)
    texts = {name: getattr(draft.values, name).strip() for name in draft.names - {"options"}}
    return Draft(replace(draft.values, **texts), draft.names)


def provider_message(one: ProviderEntry) -> provider_pb2.Provider:
    """Returns the message of a provider as it is stored, or as the operator configured it; without its key."""
    config, row, listing = one.config, one.stored, one.listing
    message = provider_pb2.Provider(
        id=to_public("provider", one.id),
        name=config.name,
        provider_type=config.type,
        category=category(config.organization_id is not None),
        base_url=config.base_url,
        region=config.region,
        api_version=config.api_version,
        options_json=orjson.dumps(_shown_options(one)).decode(),
        has_key=_has_key(one),
        version=config.version,
        sync_error=listing.error_text or (row.sync_error if row is not None else ""),
        model_count=len(listing.by_name),
    )
    if one.problem is not None:
        message.sync_error = one.problem.message
    if row is not None and row.created_at is not None and row.updated_at is not None:
        message.created_at.FromDatetime(row.created_at)
        message.updated_at.FromDatetime(row.updated_at)
    if listing.synced_at is not None:
        message.synced_at.FromDatetime(listing.synced_at)
    return message


def category(is_tenants: bool) -> model_pb2.ProviderCategory.ValueType:
    """Returns the category of a tenant's or the operator's provider."""
    return model_pb2.PROVIDER_CATEGORY_BYOK if is_tenants else model_pb2.PROVIDER_CATEGORY_BASE


def _has_key(one: ProviderEntry) -> bool:
    if one.stored is not None:
        return one.stored.credentials is not None
    return one.config.api_key not in ("", NO_KEY)


def _shown_options(one: ProviderEntry) -> Mapping[str, Any]:
    if one.stored is not None:
        return one.stored.options
    secrets = {option.name for option in TYPES[one.config.type].options if option.secret}
    return {name: value for name, value in one.config.options.items() if name not in secrets}


class ProviderServicer(provider_grpc.ProviderServiceServicer):
    """loci.llm.v1.ProviderService."""

    def __init__(self, service: ProviderService) -> None:
        self._service = service

    async def CreateProvider(
        self, request: provider_pb.CreateProviderRequest, context: Any
    ) -> provider_pb.CreateProviderResponse:
        caller, settings = current(), settings_of(request.provider)
        entry = await self._service.create(caller.organization_id, caller.user_id, _id(request.id), settings)
        return provider_pb.CreateProviderResponse(provider=provider_message(entry))

    async def GetProvider(
        self, request: provider_pb.GetProviderRequest, context: Any
    ) -> provider_pb.GetProviderResponse:
        entry = await self._service.get(current().organization_id, _id(request.id))
        return provider_pb.GetProviderResponse(provider=provider_message(entry))

    async def ListProviders(
        self, request: provider_pb.ListProvidersRequest, context: Any
    ) -> provider_pb.ListProvidersResponse:
        entries = await self._service.list(current().organization_id, request.name, request.provider_type)
        return provider_pb.ListProvidersResponse(providers=map(provider_message, entries))

    async def UpdateProvider(
        self, request: provider_pb.UpdateProviderRequest, context: Any
    ) -> provider_pb.UpdateProviderResponse:
        version = request.version if request.HasField("version") else None
        draft = draft_of(request.provider, request.update_mask.paths)
        entry = await self._service.update(current().organization_id, _id(request.id), draft, version)
        return provider_pb.UpdateProviderResponse(provider=provider_message(entry))

    async def DeleteProvider(
        self, request: provider_pb.DeleteProviderRequest, context: Any
    ) -> provider_pb.DeleteProviderResponse:
        await self._service.delete(current().organization_id, _id(request.id))
        return provider_pb.DeleteProviderResponse()

    async def CheckProvider(
        self, request: provider_pb.CheckProviderRequest, context: Any
    ) -> provider_pb.CheckProviderResponse:
        organization_id = current().organization_id
        match request.WhichOneof("target"):
            case "id":
                count = await self._service.check(organization_id, _id(request.id))
            case "provider":
                settings = replace(settings_of(request.provider), name=_UNNAMED)
                count = await self._service.check_settings(organization_id, settings)
            case None:
                raise ProviderInvalid("settings: nothing to check was given.")
        return provider_pb.CheckProviderResponse(model_count=count)

    async def RefreshProvider(
        self, request: provider_pb.RefreshProviderRequest, context: Any
    ) -> provider_pb.RefreshProviderResponse:
        refreshed = await self._service.refresh(current().organization_id, _id(request.id))
        return provider_pb.RefreshProviderResponse(provider=provider_message(refreshed))

    async def PurgeOrganization(
        self, request: provider_pb.PurgeOrganizationRequest, context: Any
    ) -> provider_pb.PurgeOrganizationResponse:
        done = await self._service.purge_organization(organization_to_purge())
        return provider_pb.PurgeOrganizationResponse(done=done)


def _id(text: str) -> UUID:
    return from_public("provider", text)
