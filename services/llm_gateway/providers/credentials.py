"""A provider's key and access key: sealed for their row, opened when it is read. They are never shown and never
logged.
"""

from dataclasses import dataclass, field
from uuid import UUID

import orjson

from services.common.encryption import ENCRYPTION_KEY, Sealer, UnreadableSecret
from services.llm_gateway.core.errors import CredentialsUnreadable
from services.llm_gateway.providers.model import StoredProvider


@dataclass(frozen=True, slots=True)
class Credentials:
    """Empty texts where there is none."""

    api_key: str = field(default="", repr=False)
    access_key: str = field(default="", repr=False)


class Vault:
    """Seals and opens credentials."""

    def __init__(self, sealer: Sealer) -> None:
        self._sealer = sealer

    def seal(self, credentials: Credentials, organization_id: UUID, provider_id: UUID) -> bytes | None:
        """Returns the sealed form; None where there is nothing to keep."""
        if not credentials.api_key and not credentials.access_key:
            return None
        text = orjson.dumps({"api_key": credentials.api_key, "access_key": credentials.access_key})
        return self._sealer.seal(text, _place(organization_id, provider_id))

    def open(self, row: StoredProvider) -> Credentials:
        """Returns the credentials that were sealed for this row. Raises CredentialsUnreadable."""
        if row.credentials is None:
            return Credentials()
        try:
            text = self._sealer.open(row.credentials, _place(row.organization_id, row.id))
        except UnreadableSecret as error:
            raise CredentialsUnreadable(
                f"The stored key of provider {row.name} cannot be read: {error}. Give it a new api_key, or start the "
                f"llm gateway with the {ENCRYPTION_KEY} it was stored under (several are separated by commas).",
                provider=row.name,
            ) from error
        return Credentials(**orjson.loads(text))


def _place(organization_id: UUID, provider_id: UUID) -> str:
    return f"{organization_id}/{provider_id}/credentials"
