"""Routes of servers that want a bearer token at most, and have no SDK that we use."""

import httpx2

from services.llm_gateway.providers.config import ProviderConfig
from services.llm_gateway.providers.transport import Route

# What stands for a key where none is set: SDKs insist on one.
NO_KEY = "none"


class BearerRoutes:
    """Paths behind one base URL, which ends without a slash."""

    def __init__(self, base_url: str, api_key: str) -> None:
        self._base_url = base_url
        self._headers = httpx2.Headers(
            {"accept": "*/*", "accept-encoding": "gzip, deflate", "content-type": "application/json"}
        )
        if api_key and api_key != NO_KEY:
            self._headers["authorization"] = f"Bearer {api_key}"

    @classmethod
    def of(cls, config: ProviderConfig) -> "BearerRoutes":
        """Of the provider's own base URL."""
        return cls(config.base_url, config.api_key)

    async def find(self, method: str, path: str, body: bytes) -> Route:
        """See Routes.find."""
        return Route(httpx2.URL(f"{self._base_url}{path}"), self._headers)
