"""The embedded Postgres' share of a machine's memory."""

from __future__ import annotations

import pytest

from cli.postgres import shared_buffers

GB = 1 << 30


@pytest.mark.parametrize(
    ("memory", "expected"), [(GB // 4, "128MB"), (2 * GB, "409MB"), (8 * GB, "1638MB"), (64 * GB, "4096MB")]
)
def test_shared_buffers(memory: int, expected: str) -> None:
    assert shared_buffers(memory) == expected
