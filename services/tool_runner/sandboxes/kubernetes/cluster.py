"""The few things the runner asks of the Kubernetes API: list the hosts, delete one. Its role allows no more.

API: https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/
"""

import ssl
from typing import Any

import httpx

from services.tool_runner.core.job import SandboxUnavailable
from services.tool_runner.sandboxes.kubernetes.rules import Pod
from services.tool_runner.sandboxes.remote_settings import ClusterSettings

_SECONDS = 10.0
_MOST_PODS = 500


class Cluster:
    """Raises SandboxUnavailable where the API does not answer as it should."""

    def __init__(self, settings: ClusterSettings) -> None:
        self._settings = settings
        try:
            trusted = ssl.create_default_context(cafile=str(settings.authority))
        except OSError as error:
            raise SandboxUnavailable(
                f"the cluster's certificate {settings.authority} cannot be read: {error}"
            ) from error
        self._http = httpx.AsyncClient(base_url=settings.server, verify=trusted, timeout=_SECONDS, trust_env=False)

    async def hosts(self) -> list[Pod]:
        """Returns the sandbox hosts, whatever their state."""
        parameters = {"labelSelector": self._settings.selector, "limit": str(_MOST_PODS)}
        body = await self._ask("GET", "", parameters)
        return [_pod(item) for item in body.get("items", ())]

    async def delete(self, name: str) -> None:
        """Deletes a host; its Deployment makes another. One that is gone is no error."""
        await self._ask("DELETE", f"/{name}", {"gracePeriodSeconds": "0"})

    async def close(self) -> None:
        """Closes connections."""
        await self._http.aclose()

    async def _ask(self, method: str, path: str, parameters: dict[str, str]) -> dict[str, Any]:
        pods = f"/api/v1/namespaces/{self._settings.namespace}/pods{path}"
        try:
            # Read anew for each request: it is replaced before it expires.
            token = self._settings.token.read_text().strip()
            headers = {"Authorization": f"Bearer {token}"}
            response = await self._http.request(method, pods, params=parameters, headers=headers)
            if response.status_code == httpx.codes.NOT_FOUND and method == "DELETE":
                return {}
            response.raise_for_status()
            body: dict[str, Any] = response.json()
        except (OSError, httpx.HTTPError, ValueError) as error:
            raise SandboxUnavailable(f"the Kubernetes API failed to {method} sandbox hosts: {error}") from error
        return body


def _pod(item: dict[str, Any]) -> Pod:
    metadata, spec, status = item["metadata"], item.get("spec", {}), item.get("status", {})
    containers = status.get("containerStatuses", ())
    return Pod(
        name=metadata["name"],
        address=status.get("podIP", ""),
        ready=bool(containers) and all(container.get("ready") for container in containers),
        # A host that began again has no key any more; see host.py.
        spent=any(container.get("restartCount", 0) for container in containers) or status.get("phase") == "Failed",
        leaving="deletionTimestamp" in metadata,
        runtime_class=spec.get("runtimeClassName", ""),
        image=next((container.get("image", "") for container in spec.get("containers", ())), ""),
    )
