"""Azure OpenAI's addresses, of its two APIs, from any of the URLs that Azure gives. Pure.

v1 (`/openai/v1`): OpenAI's own paths, the deployment as the request's model, no version. Dated: a deployment is in the
path of chats and embeddings, `?api-version=` behind each. Source, read in November 2026:
learn.microsoft.com/azure/foundry/openai/api-version-lifecycle and .../reference.
"""

import re
from dataclasses import dataclass
from urllib.parse import parse_qs, quote, urlsplit

# Where a deployment is given and no version: the last dated one, the first with Responses being 2025-03-01-preview.
DEFAULT_VERSION = "2025-04-01-preview"
_FIRST_WITH_RESPONSES = "2025-03-01"
# The last that lists deployments to who has a key alone; the management plane wants an account.
LISTING_VERSION = "2023-03-15-preview"
_NOT_DATED = frozenset({"v1", "latest", "preview"})
_DEPLOYMENT = re.compile(r"/deployments/([^/]+)")


@dataclass(frozen=True, slots=True)
class Addresses:
    """`root`: what is before `/openai`. `version`: of the dated API; empty for v1. `deployment`: the one that the given
    address names, empty without one.
    """

    root: str
    version: str = ""
    deployment: str = ""

    @classmethod
    def of(cls, url: str, version: str = "") -> "Addresses":
        """Returns the addresses of a base URL: a resource, with `/openai/v1`, with `/openai/deployments/NAME` and
        anything behind.

        `version` is the one that is set, which counts before the one in the URL.
        """
        parts = urlsplit(url)
        path, mark, rest = parts.path.partition("/openai")
        root = f"{parts.scheme}://{parts.netloc}{path.rstrip('/')}"
        match = _DEPLOYMENT.search(rest) if mark else None
        deployment = match.group(1) if match else ""
        version = version or parse_qs(parts.query).get("api-version", [""])[-1]
        if rest.startswith("/v1") or version in _NOT_DATED:
            version = ""
        elif deployment:
            version = version or DEFAULT_VERSION
        return cls(root, version, deployment)

    @property
    def base_url(self) -> str:
        """Returns the URL that paths are put behind."""
        return f"{self.root}/openai" if self.version else f"{self.root}/openai/v1"

    @property
    def has_responses(self) -> bool:
        """Returns whether the API has Responses."""
        return not self.version or self.version >= _FIRST_WITH_RESPONSES

    def path(self, path: str, deployment: str = "") -> str:
        """Returns that path of OpenAI's API, for the deployment where it is one of a deployment's."""
        if not self.version:
            return path
        place = f"/deployments/{quote(deployment, safe='')}" if deployment else ""
        return f"{place}{path}?api-version={quote(self.version, safe='')}"
