"""Bedrock's addresses and authentication: requests are signed by Signature V4, or have a Bedrock API key.

Each request has a signature of its own, over its body, its host and its path. aiohttp writes a colon in a path as it
is, whatever was given: so it is signed as it is, and other reserved characters percent-encoded (ARNs have slashes).
"""

from urllib.parse import parse_qsl

import httpx2
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from services.llm_gateway.core.errors import ProviderInvalid
from services.llm_gateway.core.provider_config import ProviderConfig
from services.llm_gateway.http.routes import Route

_CONTROL_PATHS = ("/foundation-models", "/inference-profiles")
_SERVICE = "bedrock"
# Which keys are Bedrock's own, long-lived and short-lived; they may stand beside an account's.
_BEARERS = ("ABSK", "bedrock-api-key-")


class BedrockRoutes:
    """A transport.Routes for both of Bedrock's endpoints."""

    def __init__(self, config: ProviderConfig) -> None:
        self._config = config
        self._runtime, self._control = endpoints(config)
        self._bearer = "" if _signs(config) else config.api_key
        self._signer = _signer(config) if _signs(config) else None

    async def find(self, method: str, path: str, body: bytes) -> Route:
        """See Routes.find."""
        endpoint = self._control if path.startswith(_CONTROL_PATHS) else self._runtime
        url = f"{endpoint}{path}"
        stream = path.endswith("-stream")
        accept = "application/vnd.amazon.eventstream" if stream else "application/json"
        headers = {"accept": accept, **({"content-type": "application/json"} if body else {})}
        if self._signer is None:
            headers["authorization"] = f"Bearer {self._bearer}"
        else:
            bare, _, query = url.partition("?")
            request = AWSRequest(method, bare, headers, body, params=dict(parse_qsl(query, keep_blank_values=True)))
            self._signer.add_auth(request)
            headers = dict(request.headers.items())
        return Route(httpx2.URL(url), httpx2.Headers({**headers, "accept-encoding": "gzip, deflate"}))


def endpoints(config: ProviderConfig) -> tuple[str, str]:
    """Returns the base URLs of the runtime and of the control plane. Raises ProviderInvalid without a region."""
    control = str(config.options.get("control_url") or "").rstrip("/")
    if config.base_url:
        return config.base_url, control or config.base_url.replace("://bedrock-runtime", "://bedrock")
    if not config.region:
        raise ProviderInvalid(
            f"{config.name} has no region: set AWS_REGION (for example us-east-1), or the provider's region.",
            provider=config.name,
        )
    suffix = "amazonaws.com.cn" if config.region.startswith("cn-") else "amazonaws.com"
    runtime = f"https://bedrock-runtime.{config.region}.{suffix}"
    return runtime, control or f"https://bedrock.{config.region}.{suffix}"


def key_setting(config: ProviderConfig) -> str:
    """Returns the setting that its owner would change where the key is refused."""
    if _signs(config) and config.key_setting.startswith("AWS_"):
        return "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
    return config.key_setting


def _signs(config: ProviderConfig) -> bool:
    return bool(config.access_key) and not config.api_key.startswith(_BEARERS)


def _signer(config: ProviderConfig) -> SigV4Auth:
    token = config.options.get("session_token") or None
    # A private endpoint without a region is signed for as AWS's own tools do.
    return SigV4Auth(Credentials(config.access_key, config.api_key, token), _SERVICE, config.region or "us-east-1")
