"""The account that is written in the background."""

import asyncio
import logging
from collections.abc import Sequence
from datetime import UTC, datetime
from uuid import UUID, uuid4

import pytest

from services.llm_gateway.usage import log as module
from services.llm_gateway.usage.log import UsageLog
from services.llm_gateway.usage.model import StoreRefused, StoreUnavailable, UsageRow


class Store:
    """Keeps rows, unless it is away, refuses them or hangs."""

    def __init__(self) -> None:
        self.rows: list[UsageRow] = []
        self.batches = 0
        self.away = self.refuses = self.hangs = False
        self.hanging = asyncio.Event()

    async def write(self, rows: Sequence[UsageRow]) -> None:
        if self.away:
            raise StoreUnavailable("away")
        if self.refuses:
            raise StoreRefused("no such column")
        if self.hangs:
            self.hanging.set()
            await asyncio.sleep(60)
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


async def test_rows_that_are_refused_are_lost_and_the_next_are_not(caplog: pytest.LogCaptureFixture) -> None:
    store = Store()
    store.refuses = True
    log = UsageLog(store)
    log.add(row(1))
    await log.flush()
    assert "a usage row of a/b is lost" in caplog.text
    store.refuses = False
    log.add(row(2))
    await log.flush()
    assert [one.prompt_tokens for one in store.rows] == [2]


async def test_stopping_in_the_middle_of_a_write_loses_nothing() -> None:
    store = Store()
    store.hangs = True
    log = UsageLog(store)
    log.add(row(1))
    flushing = asyncio.create_task(log.flush())
    await store.hanging.wait()
    flushing.cancel()
    await asyncio.wait((flushing,))
    store.hangs = False
    await log.flush()
    assert [one.prompt_tokens for one in store.rows] == [1]


class Choosy(Store):
    """Refuses every batch with such a row in it, and is away from some moment on."""

    def __init__(self, *bad: int) -> None:
        super().__init__()
        self.bad = bad
        self.writes_left = 1_000

    async def write(self, rows: Sequence[UsageRow]) -> None:
        self.writes_left -= 1
        self.away = self.writes_left < 0
        if not self.away and any(row.prompt_tokens in self.bad for row in rows):
            raise StoreRefused("a number that is none")
        await super().write(rows)


async def test_a_row_that_is_refused_takes_no_others_along() -> None:
    store = Choosy(17, 450)
    log = UsageLog(store)
    for number in range(500):
        log.add(row(number))
    await log.flush()
    assert sorted(one.prompt_tokens for one in store.rows) == sorted({*range(500)} - {17, 450})
    assert not log.waiting


async def test_the_store_goes_away_while_a_bad_row_is_looked_for() -> None:
    store = Choosy(17)
    log = UsageLog(store)
    for number in range(64):
        log.add(row(number))
    store.writes_left = 4
    await log.flush()
    assert len(store.rows) + len(list(log.waiting)) == 64
    store.writes_left = 1_000
    await log.flush()
    assert [one.prompt_tokens for one in store.rows] == [number for number in range(64) if number != 17]
