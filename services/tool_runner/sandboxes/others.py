"""The sandboxes that are somewhere else, made where LOCI_SANDBOX names them."""

from collections.abc import Mapping
from dataclasses import dataclass

from services.tool_runner.job import SandboxUnavailable
from services.tool_runner.ports import Sandbox
from services.tool_runner.sandboxes.choose import Kind, Maker
from services.tool_runner.sandboxes.e2b import E2bSettings, E2bSource
from services.tool_runner.sandboxes.kubernetes.source import KubernetesSettings, KubernetesSource
from services.tool_runner.sandboxes.modal import ModalSettings, ModalSource
from services.tool_runner.sandboxes.pool import PooledSandbox


@dataclass(frozen=True, slots=True)
class OtherSettings:
    """Those of each kind; None where it is not the one that is set. `warm`: workers that wait, where nobody's may."""

    kubernetes: KubernetesSettings | None = None
    e2b: E2bSettings | None = None
    modal: ModalSettings | None = None
    warm: int = 0


def makers(settings: OtherSettings) -> Mapping[Kind, Maker]:
    """What makes each kind."""

    async def kubernetes() -> Sandbox:
        if settings.kubernetes is None:
            raise SandboxUnavailable("LOCI_SANDBOX is not kubernetes")
        return PooledSandbox(KubernetesSource(settings.kubernetes), warm=0)

    async def e2b() -> Sandbox:
        if settings.e2b is None:
            raise SandboxUnavailable("LOCI_SANDBOX is not e2b")
        return PooledSandbox(E2bSource(settings.e2b), settings.warm)

    async def modal() -> Sandbox:
        if settings.modal is None:
            raise SandboxUnavailable("LOCI_SANDBOX is not modal")
        return PooledSandbox(ModalSource(settings.modal), settings.warm)

    return {"kubernetes": kubernetes, "e2b": e2b, "modal": modal}
