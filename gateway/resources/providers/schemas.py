"""Providers."""

from gateway.openapi.schemas import TEXT, WHOLE, maybe, members_of, names_of, of, record
from loci.llm.v1 import model_pb2, provider_pb2

PROVIDER = of(
    "Provider",
    provider_pb2.Provider.DESCRIPTOR,
    leave=("category", "synced_at"),
    provider_category=names_of(model_pb2.ProviderCategory.DESCRIPTOR, null=True),
    last_synced=members_of(provider_pb2.Provider.DESCRIPTOR)["synced_at"],
    organization_id=TEXT,
    **dict.fromkeys(
        ("api_key", "api_key_enc", "access_key", "access_key_enc", "base_url", "region", "api_version", "sync_error"),
        maybe(TEXT),
    ),
)
PROVIDER_CHECKED = record("ProviderChecked", {"message": TEXT, "model_count": WHOLE})
