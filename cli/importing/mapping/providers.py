"""Providers that users brought themselves. No I/O."""

from cli.importing.values import Row, Skip, as_text, public_id
from loci.llm.v1 import provider_pb2, provider_service_pb2
from services.llm_gateway.core.provider_types import TYPES

# What the old server called types, where they have other names here.
_TYPES = {"hugging_face": "hugging-face", "moonshot": "moonshot", "google": "google_ai"}


def is_byok(row: Row) -> bool:
    """Returns whether a user brought the provider; the others come from the old server's environment."""
    return as_text(row["provider_category"]) == "byok"


def provider(row: Row, api_key: str, access_key: str) -> provider_service_pb2.CreateProviderRequest | Skip:
    """Returns a provider with its keys in the clear."""
    old_type = as_text(row["provider_type"])
    provider_type = _TYPES.get(old_type, old_type)
    if provider_type not in TYPES:
        return Skip(f"there is no provider of type {old_type!r} here")
    message = provider_pb2.Provider(
        name=as_text(row["name"]),
        provider_type=provider_type,
        api_key=api_key,
        access_key=access_key,
        base_url=as_text(row["base_url"]),
        region=as_text(row["region"]),
        api_version=as_text(row["api_version"]),
    )
    return provider_service_pb2.CreateProviderRequest(id=public_id("provider", row["id"]), provider=message)
