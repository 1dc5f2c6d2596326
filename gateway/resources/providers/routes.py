"""Providers: the operator's (category base), and those that a tenant adds with its own key (byok)."""

from typing import Annotated, Literal

from fastapi import APIRouter, Path
from starlette.responses import Response

from gateway.errors.invalid import EXAMPLE_UUID
from gateway.openapi.answers import returns
from gateway.openapi.schemas import MESSAGE, array
from gateway.resources.providers import requests as bodies
from gateway.resources.providers.schemas import PROVIDER, PROVIDER_CHECKED
from gateway.rest.convert import Rest, to_rest
from gateway.rest.paging import FIRST_PAGE, descending, one_page, paged
from gateway.rest.params import checked_id
from gateway.rest.responses import json_response
from gateway.rest.services import Loci, Services
from loci.common.v1.page_pb2 import PageRequest
from loci.llm.v1 import provider_pb2, provider_service_pb2
from services.common.context import current
from services.common.ids import to_public, uuid7

# Where clients look for keys.
_KEYS = ("api_key", "api_key_enc", "access_key", "access_key_enc")

router = APIRouter(prefix="/providers", tags=["providers"])

ProviderId = Annotated[str, Path(examples=[f"provider-{EXAMPLE_UUID}"]), checked_id("provider")]
# Where an endpoint is asked for its models meanwhile; it gets 10 s.
_ASKING_SECONDS = 25.0


@router.post("")
@returns(PROVIDER)
async def create_provider(body: bodies.CreateProvider, loci: Loci) -> Response:
    """Adds a provider and lists its models. Its key is stored encrypted, and never told again."""
    # With an id, so that it may be repeated.
    request = provider_service_pb2.CreateProviderRequest(id=to_public("provider", uuid7()), provider=body.message())
    created = await loci.peers.call(loci.peers.providers.CreateProvider, request, timeout=_ASKING_SECONDS)
    return _changed(loci, created.provider)


@router.get("")
@returns(array(PROVIDER))
@paged(50)
async def list_providers(
    loci: Loci,
    name: str | None = None,
    provider_type: str | None = None,
    provider_category: Literal["base", "byok"] | None = None,
    page: PageRequest = FIRST_PAGE,
) -> Response:
    """A page of providers, the newest first; those of the operator, which have no age, come last."""
    request = provider_service_pb2.ListProvidersRequest(name=name or "", provider_type=provider_type or "")
    providers = list((await loci.peers.call(loci.peers.providers.ListProviders, request)).providers)
    providers.sort(key=lambda one: (one.created_at.ToNanoseconds(), one.name), reverse=descending(page))
    rest = [one for one in map(_rest, providers) if provider_category in (None, one["provider_category"])]
    return json_response(one_page(rest, page, key=lambda one: str(one["id"])))


@router.post("/check")
@returns(PROVIDER_CHECKED)
async def check_new_provider(body: bodies.CheckProvider, loci: Loci) -> Response:
    """Asks an endpoint for its models with this key, and stores nothing."""
    request = provider_service_pb2.CheckProviderRequest(provider=body.message())
    return await _check(loci, request)


@router.get("/{provider_id}")
@returns(PROVIDER)
async def retrieve_provider(provider_id: ProviderId, loci: Loci) -> Response:
    """One provider."""
    request = provider_service_pb2.GetProviderRequest(id=provider_id)
    return json_response(_rest((await loci.peers.call(loci.peers.providers.GetProvider, request)).provider))


@router.patch("/{provider_id}")
@returns(PROVIDER)
async def update_provider(provider_id: ProviderId, body: bodies.UpdateProvider, loci: Loci) -> Response:
    """Changes what the body names; `options` are replaced as a whole."""
    request = provider_service_pb2.UpdateProviderRequest(
        id=provider_id, provider=body.message(), update_mask=body.mask(leave=("version",)), version=body.version
    )
    changed = await loci.peers.call(loci.peers.providers.UpdateProvider, request, timeout=_ASKING_SECONDS)
    return _changed(loci, changed.provider)


@router.delete("/{provider_id}")
@returns(MESSAGE)
async def delete_provider(provider_id: ProviderId, loci: Loci) -> Response:
    """Deletes a provider and its key. Agents keep its handles, which name nothing then."""
    # The deletion itself may be repeated, and says nothing of one that is not there.
    get = provider_service_pb2.GetProviderRequest(id=provider_id)
    await loci.peers.call(loci.peers.providers.GetProvider, get)
    request = provider_service_pb2.DeleteProviderRequest(id=provider_id)
    await loci.peers.call(loci.peers.providers.DeleteProvider, request)
    loci.catalogue.forget()
    return json_response({"message": f"Provider id={provider_id} successfully deleted"})


@router.post("/{provider_id}/check")
@returns(PROVIDER_CHECKED)
async def check_provider(provider_id: ProviderId, loci: Loci) -> Response:
    """Asks the endpoint for its models with the stored key."""
    return await _check(loci, provider_service_pb2.CheckProviderRequest(id=provider_id))


@router.patch("/{provider_id}/refresh")
@returns(PROVIDER)
async def refresh_provider(provider_id: ProviderId, loci: Loci) -> Response:
    """Lists the models anew."""
    request = provider_service_pb2.RefreshProviderRequest(id=provider_id)
    refreshed = await loci.peers.call(loci.peers.providers.RefreshProvider, request, timeout=_ASKING_SECONDS)
    return _changed(loci, refreshed.provider)


async def _check(loci: Services, request: provider_service_pb2.CheckProviderRequest) -> Response:
    checked = await loci.peers.call(loci.peers.providers.CheckProvider, request, timeout=_ASKING_SECONDS)
    count = checked.model_count
    return json_response({"message": f"The key is accepted; {count} models are listed", "model_count": count})


def _changed(loci: Services, provider: provider_pb2.Provider) -> Response:
    loci.catalogue.forget()
    return json_response(_rest(provider))


def _rest(provider: provider_pb2.Provider) -> Rest:
    """Returns the reference's Provider, and what we know besides. A key is never shown."""
    rest = to_rest(provider)
    return rest | {
        "provider_category": rest.pop("category"),
        "last_synced": rest.pop("synced_at"),
        **dict.fromkeys(_KEYS),
        "organization_id": to_public("org", current().organization_id),
        **{name: rest[name] or None for name in ("base_url", "region", "api_version", "sync_error")},
    }
