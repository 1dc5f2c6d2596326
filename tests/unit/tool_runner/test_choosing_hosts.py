"""Which sandbox host serves a call."""

from dataclasses import replace

import pytest

from services.tool_runner.sandboxes.kubernetes.rules import Lease, Pod, Recycle, Refuse, Use, Wait, choose

A, B = (Pod(name=name, address=f"10.0.0.{place}", runtime_class="gvisor") for place, name in enumerate("ab", 1))
BARE = Pod(name="bare", address="10.0.0.9")


@pytest.mark.parametrize(
    ("pods", "leases", "decision"),
    [
        ((A, B), {}, Use(A)),
        ((A, B), {"b": Lease("me")}, Use(B)),
        ((A, B), {"a": Lease("other"), "b": Lease("me", busy=True)}, Recycle(A)),
        ((A, B), {"a": Lease("other", busy=True)}, Use(B)),
        ((A,), {"a": Lease("other")}, Recycle(A)),
        ((replace(A, spent=True), B), {}, Recycle(replace(A, spent=True))),
        ((replace(A, ready=False), B), {}, Use(B)),
        ((replace(A, leaving=True), replace(B, address="")), {}, None),
        ((replace(A, spent=True, leaving=True), B), {}, Use(B)),
        ((A, B), {"a": Lease("me", busy=True), "b": Lease("other", busy=True)}, None),
        ((), {}, None),
        ((BARE,), {"bare": Lease("me")}, Use(BARE)),
        ((BARE,), {}, Use(BARE)),
    ],
)
def test_a_host_of_ours_then_a_free_one_then_one_that_is_recycled(
    pods: tuple[Pod, ...], leases: dict[str, Lease], decision: object
) -> None:
    found = choose(pods, leases, "me")
    assert isinstance(found, Wait) if decision is None else found == decision


def test_what_is_waited_for_is_said() -> None:
    assert "component sandbox-hosts" in choose((), {}, "me").why  # type: ignore[union-attr]
    busy = choose((A,), {"a": Lease("me", busy=True)}, "me")
    assert busy == Wait("all 1 sandbox hosts are busy; raise the replicas of their Deployment")


def test_without_a_runtime_class_a_second_tenant_is_refused_unless_told() -> None:
    leases = {"bare": Lease("other")}
    refused = choose((A, BARE), leases, "me")
    assert isinstance(refused, Refuse)
    assert "LOCI_SANDBOX_SHARED_KERNEL=true" in refused.why
    assert choose((BARE,), leases, "me", shared_kernel=True) == Recycle(BARE)
