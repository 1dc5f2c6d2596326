"""Creating, changing and checking providers. The llm gateway, which knows the types, refuses what is wrong."""

from typing import Annotated

from pydantic import Field

from gateway.rest.body import Body, Json, dump, given
from loci.llm.v1 import provider_pb2, provider_service_pb2
from services.common.ids import to_public, uuid7

_TEXTS = ("api_key", "access_key", "base_url", "region", "api_version")
Version = Annotated[int, Field(ge=1, le=2**63 - 1)]
# pydantic would show the value of one that is wrong.
Key = Annotated[str | None, Field(repr=False)]


class Reached(Body):
    """How a provider is reached."""

    api_key: Key = None
    access_key: Key = None
    base_url: str | None = None
    region: str | None = None
    api_version: str | None = None
    options: Json | None = None


class CheckProvider(Reached):
    """Body of POST /providers/check."""

    provider_type: str


class CreateProvider(CheckProvider):
    """Body of POST /providers."""

    name: str


class UpdateProvider(Reached):
    """Body of PATCH /providers/{id}: only what is sent changes. `version`: the one that is expected."""

    name: str | None = None
    version: Version | None = None


def settings_of(body: CheckProvider) -> provider_pb2.ProviderSettings:
    """Returns the connection settings of a provider."""
    sent = given(body)
    texts = {name: sent[name] for name in _TEXTS if name in sent}
    options = {"options_json": dump(sent["options"])} if "options" in sent else {}
    return provider_pb2.ProviderSettings(provider_type=body.provider_type, **texts, **options)


def create_request(body: CreateProvider) -> provider_service_pb2.CreateProviderRequest:
    """With an id, so that it may be repeated."""
    return provider_service_pb2.CreateProviderRequest(
        id=to_public("provider", uuid7()), name=body.name, settings=settings_of(body)
    )


def update_request(provider_id: str, body: UpdateProvider) -> provider_service_pb2.UpdateProviderRequest:
    """Returns the settings that the body changes."""
    sent = given(body)
    texts = {name: sent[name] for name in ("name", *_TEXTS) if name in sent}
    options = {"options_json": dump(sent["options"])} if "options" in sent else {}
    return provider_service_pb2.UpdateProviderRequest(
        id=provider_id,
        change=provider_service_pb2.ProviderChange(**texts, **options),
        version=body.version,
    )
