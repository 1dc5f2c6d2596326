"""Agents deleted: gone at once, then erased here and purged elsewhere, at least once."""

import asyncio
from pathlib import Path

import pytest

from loci.agent.v1 import message_service_pb2, run_pb2, run_service_pb2
from services.agent.resources.outbox import service as outbox
from services.agent.resources.outbox.service import pause
from services.common.errors import NotFound, Unavailable
from services.common.ids import from_public, uuid7
from tests.integration.agent.admin_world import ORGANIZATION, AdminWorld, admin_world, block
from tests.polling import until

TABLES = (
    "agents",
    "conversations",
    "conversation_heads",
    "conversation_segments",
    "conversation_line",
    "runs",
    "run_keys",
    "facts",
    "steps",
    "messages",
    "compiled_prompts",
    "outbox",
)


async def test_readers_see_it_no_more(world: AdminWorld) -> None:
    agent = await world.create(blocks=[block("human")])
    run_id = (await world.say(agent.id)).end.run.id
    await world.delete(agent.id)
    assert [each.id for each in (await world.list(show_hidden=True)).agents] == []
    lists = message_service_pb2.ListMessagesRequest(agent_id=agent.id)
    for rpc, request, reason in (
        (world.messages.ListMessages, lists, "AGENT_NOT_FOUND"),
        (world.runs.GetRun, run_service_pb2.GetRunRequest(run_id=run_id), "RUN_NOT_FOUND"),
        (world.runs.ListRunSteps, run_service_pb2.ListRunStepsRequest(run_id=run_id), "RUN_NOT_FOUND"),
    ):
        with pytest.raises(NotFound) as caught:
            await world.call(rpc, request)
        assert caught.value.reason == reason
    with pytest.raises(NotFound):
        await world.get(agent.id)
    with pytest.raises(NotFound):
        await world.say(agent.id)
    with pytest.raises(NotFound):
        await world.delete(agent.id)
    runs = await world.call(world.runs.ListRuns, run_service_pb2.ListRunsRequest())
    assert list(runs.runs) == []


async def test_nothing_of_it_is_left(world: AdminWorld) -> None:
    agent, other = await world.create(blocks=[block("human")]), await world.create()
    for each in (agent, agent, other):
        await world.say(each.id)
    await world.delete(agent.id)
    await world.deliver()
    assert {table: await world.rows(table) for table in TABLES} == {
        **dict.fromkeys(("agents", "conversations", "conversation_heads", "conversation_segments"), 1),
        **dict.fromkeys(("runs", "steps", "compiled_prompts"), 1),
        **dict.fromkeys(("conversation_line", "run_keys", "outbox"), 0),
        "facts": 3,
        "messages": 2,
    }
    assert sorted(world.peers.purged) == [(what, agent.id) for what in ("memory", "receipts", "secrets")]
    assert len((await world.get(other.id)).message_ids) == 3


async def test_its_orders_are_delivered_without_being_asked(world: AdminWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    # Whoever orders says so, and the next look is far away.
    monkeypatch.setattr(outbox, "POLL_SECONDS", 600.0)
    task = asyncio.create_task(world.built.deliveries.run())
    agent = await world.create(blocks=[block("human")])
    await world.delete(agent.id)
    await until(lambda: len(world.peers.purged) == 3)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_running_and_waiting_runs_end(world: AdminWorld) -> None:
    agent = await world.create()
    world.peers.may_answer.clear()
    turns = [asyncio.create_task(world.say(agent.id, text)) for text in ("one", "two", "three")]
    while await world.rows("runs") < 3:
        await asyncio.sleep(0.01)
    while world.peers.asked["Generate"] == 0:
        await asyncio.sleep(0.01)
    await world.delete(agent.id)
    ends = [response.end for response in await asyncio.gather(*turns)]
    assert [end.run.status for end in ends] == [run_pb2.RUN_STATUS_CANCELLED] * 3
    await world.deliver()
    assert {table: await world.rows(table) for table in TABLES} == dict.fromkeys(TABLES, 0)


async def test_erasing_waits_for_a_run_to_stop(world: AdminWorld) -> None:
    agent = await world.create()
    run_id = from_public("run", (await world.say(agent.id)).end.run.id)
    await world.delete(agent.id)
    # Its owner is gone, and nobody has taken it over yet.
    await world.pool.execute("UPDATE agent.runs SET status = 'running', worker_id = NULL WHERE id = $1", run_id)
    await world.pool.execute("UPDATE agent.outbox SET not_before = now()")
    assert await world.built.deliveries.deliver_due() == 4
    # What a run may still write in other services is purged after it, too.
    orders = await world.pool.fetch(
        "SELECT kind, last_error, not_before > now() AS later FROM agent.outbox ORDER BY kind"
    )
    kinds = ("erase", "purge_memory", "purge_receipts")
    assert [tuple(order) for order in orders] == [(kind, None, True) for kind in kinds]
    assert await world.pool.fetchval("SELECT cancel_requested FROM agent.runs WHERE id = $1", run_id)
    await world.pool.execute("UPDATE agent.runs SET status = 'cancelled' WHERE id = $1", run_id)
    await world.deliver()
    assert (await world.rows("agents"), await world.rows("outbox")) == (0, 0)


async def test_what_fails_is_tried_again_later(world: AdminWorld) -> None:
    agent = await world.create()
    world.peers.failures["PurgeReceipts"] = [NotFound("no such thing", reason="STRANGE")]
    await world.delete(agent.id)
    began = await world.pool.fetchval("SELECT clock_timestamp()")
    await world.built.deliveries.deliver_due()
    order = await world.pool.fetchrow(
        "SELECT attempts, last_error, not_before > $1 AS later, not_before - now() <= interval '1 second' AS soon"
        " FROM agent.outbox WHERE kind = 'purge_receipts'",
        began,
    )
    assert tuple(order) == (1, "NotFound(STRANGE: no such thing)", True, True)
    await world.deliver()
    assert await world.rows("outbox") == 0
    assert world.peers.tenants == {ORGANIZATION}


async def test_two_replicas_share_the_orders(world: AdminWorld, agent_url: str, tmp_path: Path) -> None:
    async with admin_world(agent_url, tmp_path) as second:
        agents = [await world.create() for _ in range(10)]
        await asyncio.gather(*(world.delete(agent.id) for agent in agents))
        while sum(await asyncio.gather(world.built.deliveries.deliver_due(), second.built.deliveries.deliver_due())):
            pass
        purged = world.peers.purged + second.peers.purged
        assert len(purged) == len(set(purged)) == 30


async def test_an_order_that_nobody_knows_harms_no_other(world: AdminWorld) -> None:
    agent = await world.create()
    await world.delete(agent.id)
    await world.pool.execute(
        "INSERT INTO agent.outbox (organization_id, id, kind, subject_id, payload) VALUES ($1, $2, 'dance', $2, $3)",
        ORGANIZATION,
        uuid7(),
        {"user_id": str(ORGANIZATION)},
    )
    await world.pool.execute("UPDATE agent.outbox SET not_before = now()")
    await world.built.deliveries.deliver_due()
    assert await world.pool.fetchval("SELECT array_agg(kind) FROM agent.outbox") == ["dance"]
    assert await world.rows("agents") == 0


async def test_a_lost_memory_service_delays_the_purge(world: AdminWorld) -> None:
    agent = await world.create(blocks=[block("human")])
    world.peers.failures["PurgeAgent"] = [Unavailable("restarting")]
    await world.delete(agent.id)
    await world.deliver()
    assert ("memory", agent.id) in world.peers.purged


def test_pauses_grow_up_to_a_limit() -> None:
    assert [pause(attempts) for attempts in (1, 2, 5, 9, 10, 100_000)] == [1, 2, 16, 256, 300, 300]
