"""The sandboxes that are somewhere else, made where LOCI_SANDBOX names them."""

from collections.abc import Mapping

from services.common.lazy_imports import imported
from services.tool_runner.core.job import SandboxUnavailable
from services.tool_runner.core.ports import Sandbox
from services.tool_runner.sandboxes.choose import Kind, Maker
from services.tool_runner.sandboxes.pool import PooledSandbox
from services.tool_runner.sandboxes.remote_settings import OtherSettings


def makers(settings: OtherSettings) -> Mapping[Kind, Maker]:
    """Returns what makes each kind."""

    async def kubernetes() -> Sandbox:
        if settings.kubernetes is None:
            raise SandboxUnavailable("LOCI_SANDBOX is not kubernetes")
        source = await imported("services.tool_runner.sandboxes.kubernetes.source")
        return PooledSandbox(source.KubernetesSource(settings.kubernetes), warm=0)

    async def e2b() -> Sandbox:
        if settings.e2b is None:
            raise SandboxUnavailable("LOCI_SANDBOX is not e2b")
        hosted = await imported("services.tool_runner.sandboxes.e2b")
        return PooledSandbox(hosted.E2bSource(settings.e2b), settings.warm)

    async def modal() -> Sandbox:
        if settings.modal is None:
            raise SandboxUnavailable("LOCI_SANDBOX is not modal")
        hosted = await imported("services.tool_runner.sandboxes.modal")
        return PooledSandbox(hosted.ModalSource(settings.modal), settings.warm)

    return {"kubernetes": kubernetes, "e2b": e2b, "modal": modal}
