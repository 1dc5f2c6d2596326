"""Providers that users brought themselves. No I/O."""

from cli.importing.values import LeftOut, Row, public, text_of
from loci.llm.v1 import provider_pb2, provider_service_pb2
from services.llm_gateway.core.provider_types import TYPES

# What the old server called types, where they have other names here.
_TYPES = {"hugging_face": "hugging-face", "moonshot": "moonshot", "google": "google_ai"}


def is_users(row: Row) -> bool:
    """Whether a user made it; the others came of the old server's environment."""
    return text_of(row["provider_category"]) == "byok"


def provider(row: Row, api_key: str, access_key: str) -> provider_service_pb2.CreateProviderRequest | LeftOut:
    """A provider with its keys in the clear."""
    told = text_of(row["provider_type"])
    provider_type = _TYPES.get(told, told)
    if provider_type not in TYPES:
        return LeftOut(f"there is no provider of type {told!r} here")
    message = provider_pb2.Provider(
        name=text_of(row["name"]),
        provider_type=provider_type,
        api_key=api_key,
        access_key=access_key,
        base_url=text_of(row["base_url"]),
        region=text_of(row["region"]),
        api_version=text_of(row["api_version"]),
    )
    return provider_service_pb2.CreateProviderRequest(id=public("provider", row["id"]), provider=message)
