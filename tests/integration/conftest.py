"""What holds in every test of services."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.rpc_guard import RpcGuard


@pytest.fixture(autouse=True)
def rpc_guard() -> Iterator[RpcGuard]:
    """No transaction awaits a peer."""
    with pytest.MonkeyPatch.context() as patches:
        guard = RpcGuard(patches)
        yield guard
    assert not guard.asked, f"asked within a transaction: {guard.asked}"
