"""The configuration from which a provider is constructed."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

# What stands for a key where none is set: vendors' SDKs insist on one.
NO_KEY = "none"


@dataclass(frozen=True, slots=True)
class ProviderConfig:
    """One configured provider. `name` begins its models' handles; times are in seconds.

    `key_setting` and `url_setting` name what its owner would change, for error messages. `stall_seconds` is the longest
    wait for a stream's first byte and between its chunks, `reply_seconds` for a whole reply.

    `organization_id` is the tenant that owns it, None for the operator's; then `id` and `version` name the stored row.
    `access_key`, `region` and `api_version` are the type's own, and so are `options` (provider_types.py says which).
    Without `allow_private` only addresses of the open internet are called. `record_to` and `replay_from` are folders of
    recordings (recording.py), `replay_in_order` says how one is read (replayer.py).
    """

    name: str
    type: str
    base_url: str
    api_key: str = field(repr=False)
    key_setting: str
    url_setting: str
    # Whether base_url is the vendor's own: then its models are what the table says.
    is_vendor: bool
    stall_seconds: float = 300.0
    reply_seconds: float = 600.0
    organization_id: UUID | None = None
    id: UUID | None = None
    version: int = 0
    access_key: str = field(default="", repr=False)
    region: str = ""
    api_version: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    allow_private: bool = True
    record_to: str = ""
    replay_from: str = ""
    replay_in_order: bool = False

    @property
    def key(self) -> tuple[UUID | None, str]:
        """Returns its tenant and its name, which tell it from all others."""
        return self.organization_id, self.name
