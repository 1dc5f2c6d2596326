"""The sandboxes that are somewhere else. Add one: a module with a source of workers, its settings, and its row here."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from services.common.lazy_imports import import_lazily
from services.common.settings import Env
from services.tool_runner.core.ports import Sandbox
from services.tool_runner.sandboxes.pool import PooledSandbox
from services.tool_runner.sandboxes.remote_settings import read_e2b, read_kubernetes, read_modal


@dataclass(frozen=True, slots=True)
class RemoteKind:
    """A kind of sandbox. source: its class in `module`, below this package, which is made of what `read` returns.

    keeps_warm: whether LOCI_SANDBOX_WARM workers wait for calls.
    """

    name: str
    module: str
    source: str
    read: Callable[[Env], Any]
    keeps_warm: bool = True


REMOTE_KINDS: Mapping[str, RemoteKind] = {
    kind.name: kind
    for kind in (
        # A host belongs to one tenant, so none waits.
        RemoteKind("kubernetes", "kubernetes.source", "KubernetesSource", read_kubernetes, keeps_warm=False),
        RemoteKind("e2b", "e2b", "E2bSource", read_e2b),
        RemoteKind("modal", "modal", "ModalSource", read_modal),
    )
}


@dataclass(frozen=True, slots=True)
class RemoteSandbox:
    """The kind that the operator set, its settings, and how many workers wait."""

    kind: RemoteKind
    settings: Any = field(repr=False)
    warm: int = 0

    async def make(self) -> Sandbox:
        """Returns the sandbox; its SDK is imported now. Raises SandboxUnavailable."""
        module = await import_lazily(f"services.tool_runner.sandboxes.{self.kind.module}")
        return PooledSandbox(getattr(module, self.kind.source)(self.settings), self.warm)
