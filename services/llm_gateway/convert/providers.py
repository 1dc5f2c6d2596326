"""Providers between protobuf and what administers them."""

from collections.abc import Mapping
from typing import Any

import orjson

from loci.llm.v1 import provider_pb2, provider_service_pb2
from services.common.ids import to_public
from services.llm_gateway.configuration.admin import Change
from services.llm_gateway.configuration.configured import NO_KEY, Configured
from services.llm_gateway.configuration.rules import Draft
from services.llm_gateway.convert.models import category
from services.llm_gateway.errors import ProviderInvalid
from services.llm_gateway.provider_types import TYPES

_TEXTS = ("name", "api_key", "access_key", "base_url", "region", "api_version")


def draft_of(settings: provider_pb2.ProviderSettings, name: str) -> Draft:
    """Raises ProviderInvalid for options that are no JSON object."""
    return Draft(
        name=name,
        type=settings.provider_type,
        api_key=settings.api_key.strip(),
        access_key=settings.access_key.strip(),
        base_url=settings.base_url,
        region=settings.region,
        api_version=settings.api_version,
        options=_options(settings.options_json),
    )


def change_of(message: provider_service_pb2.ProviderChange) -> Change:
    """Raises ProviderInvalid for options that are no JSON object."""
    # The stub's names are literals, and these are in a loop.
    change: Any = message
    texts = {name: getattr(change, name).strip() for name in _TEXTS if change.HasField(name)}
    return Change(**texts, options=_options(change.options_json) if change.HasField("options_json") else None)


def provider_message(one: Configured) -> provider_pb2.Provider:
    """A provider as it is stored, or as the operator configured it; without its key."""
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
        model_count=len(listing.said),
    )
    if one.problem is not None:
        message.sync_error = one.problem.message
    if row is not None and row.created_at is not None and row.updated_at is not None:
        message.created_at.FromDatetime(row.created_at)
        message.updated_at.FromDatetime(row.updated_at)
    if listing.synced_at is not None:
        message.synced_at.FromDatetime(listing.synced_at)
    return message


def _has_key(one: Configured) -> bool:
    if one.stored is not None:
        return one.stored.credentials is not None
    return one.config.api_key not in ("", NO_KEY)


def _shown_options(one: Configured) -> Mapping[str, Any]:
    if one.stored is not None:
        return one.stored.options
    secrets = {option.name for option in TYPES[one.config.type].options if option.secret}
    return {name: value for name, value in one.config.options.items() if name not in secrets}


def _options(text: str) -> Mapping[str, Any]:
    try:
        value = orjson.loads(text or "{}")
    except orjson.JSONDecodeError:
        value = None
    if not isinstance(value, dict):
        raise ProviderInvalid("options: not a JSON object.")
    return value
