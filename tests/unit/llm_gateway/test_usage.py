"""The account that is written in the background."""

import logging
from collections.abc import Sequence
from datetime import UTC, datetime
from uuid import UUID, uuid4

import pytest

from services.llm_gateway import usage as module
from services.llm_gateway.ports import StoreUnavailable, UsageRow
from services.llm_gateway.usage import UsageLog


class Store:
    """Keeps rows, unless it is away."""

    def __init__(self) -> None:
        self.rows: list[UsageRow] = []
        self.batches = 0
        self.away = False

    async def write(self, rows: Sequence[UsageRow]) -> None:
        if self.away:
            raise StoreUnavailable("away")
        self.batches += 1
        self.rows += rows


def row(tokens: int) -> UsageRow:
    return UsageRow(
        UUID(int=1),
        uuid4(),
        "chat",
        "a/b",
        None,
        None,
        None,
        tokens,
        1,
        None,
        None,
        None,
        False,
        "b",
        5,
        datetime.now(UTC),
    )


async def test_rows_are_written_in_batches_and_in_order() -> None:
    store = Store()
    log = UsageLog(store)
    rows = [row(number) for number in range(1_200)]
    for one in rows:
        log.add(one)
    await log.flush()
    await log.flush()
    assert store.rows == rows
    assert store.batches == 3


async def test_a_database_that_is_away_delays_and_at_last_loses_the_oldest(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "MOST_WAITING", 10)
    store = Store()
    store.away = True
    log = UsageLog(store)
    for number in range(12):
        log.add(row(number))
    with caplog.at_level(logging.WARNING):
        await log.flush()
        assert "10 rows wait" in caplog.text
        store.away = False
        await log.flush()
    assert [one.prompt_tokens for one in store.rows] == list(range(2, 12))
    assert "2 usage rows were lost" in caplog.text
