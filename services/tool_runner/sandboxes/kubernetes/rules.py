"""The choice of a sandbox host for a call. Pure.

A host that is ours comes before one that is nobody's; where there is neither, one of another tenant that is idle is
deleted, so that its Deployment makes a fresh one. Hosts without a RuntimeClass share the node's kernel among tenants:
then a second tenant is refused, unless the operator allows it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Pod:
    """A sandbox host as the cluster tells of it. `spent`: it serves no more; `leaving`: it is being deleted."""

    name: str
    address: str
    ready: bool = True
    spent: bool = False
    leaving: bool = False
    runtime_class: str = ""
    image: str = ""


@dataclass(frozen=True, slots=True)
class Lease:
    """The last known state of a host: whose it is, and whether a call runs there."""

    tenant: str
    busy: bool = False


@dataclass(frozen=True, slots=True)
class Use:
    """Connect to it."""

    pod: Pod


@dataclass(frozen=True, slots=True)
class Recycle:
    """Have it retire, delete it, and look again. A host that is at work does not retire."""

    pod: Pod


@dataclass(frozen=True, slots=True)
class Wait:
    """None is to be had now; why, should the wait be in vain."""

    why: str


@dataclass(frozen=True, slots=True)
class Refuse:
    """None will be had; why."""

    why: str


Decision = Use | Recycle | Wait | Refuse


def choose(pods: Sequence[Pod], leases: Mapping[str, Lease], tenant: str, *, shared_kernel: bool = False) -> Decision:
    """Returns what to do for a call of `tenant`; `leases` by the names of pods, as far as they are known."""
    if not pods:
        return Wait("the cluster has no sandbox host: apply the component sandbox-hosts, and look at its Deployment")
    if spent := next((pod for pod in pods if pod.spent and not pod.leaving), None):
        return Recycle(spent)
    if not shared_kernel and _second(pods, leases, tenant):
        return Refuse(
            "the sandbox hosts have no RuntimeClass, so tenants would share a kernel, and another uses them already. "
            "Set runtimeClassName in their Deployment (for example gvisor), or LOCI_SANDBOX_SHARED_KERNEL=true"
        )
    usable = [pod for pod in pods if pod.ready and pod.address and not pod.leaving]
    idle = [pod for pod in usable if not leases.get(pod.name, Lease("")).busy]
    for owner in (tenant, ""):
        if mine := next((pod for pod in idle if leases.get(pod.name, Lease("")).tenant == owner), None):
            return Use(mine)
    if idle:
        return Recycle(idle[0])
    return Wait(f"all {len(pods)} sandbox hosts are busy; raise the replicas of their Deployment")


def _second(pods: Sequence[Pod], leases: Mapping[str, Lease], tenant: str) -> bool:
    exposed = any(not pod.runtime_class for pod in pods)
    return exposed and any(lease.tenant not in ("", tenant) for lease in leases.values())
