"""Callbacks: ordered by whatever ends a run, delivered at least once, with the outcome kept in the run."""

import asyncio
import hashlib
import hmac
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import orjson
import pytest

from gateway.rest.convert import moment
from loci.agent.v1 import agent_service_pb2 as agent_wire
from loci.agent.v1 import message_pb2, run_pb2
from loci.agent.v1 import message_service_pb2 as message_wire
from loci.agent.v1 import run_service_pb2 as wire
from services.agent.adapters.leases import PostgresLeases
from services.agent.core.facts import Failure, StopReason
from services.common.errors import InvalidArgument
from services.common.ids import from_public, to_public, uuid7
from tests.integration.agent.admin_world import ORGANIZATION, SECRET, USER, AdminWorld

PENDING = "SELECT count(*) FROM agent.outbox WHERE kind = 'callback'"


@dataclass
class Receiver:
    """An HTTP server that gives one status after another, then 204."""

    url: str = ""
    statuses: list[int] = field(default_factory=list)
    received: list[tuple[dict[str, str], bytes]] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Takes one request."""
        first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().strip().split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        self.received.append((headers | {"": first}, await reader.readexactly(int(headers["content-length"]))))
        status = self.statuses.pop(0) if self.statuses else 204
        writer.write(b"HTTP/1.1 %d -\r\ncontent-length: 0\r\nlocation: /elsewhere\r\n\r\n" % status)
        await writer.drain()
        writer.close()


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    """A receiver on loopback."""
    made = Receiver()
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    async with server:
        made.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/hook?key=1"
        yield made


async def test_a_callback_is_repeated_until_it_is_received(world: AdminWorld, receiver: Receiver) -> None:
    receiver.statuses = [500, 302]
    agent_id, run_id = await _run(world, receiver.url)
    await _end(world, run_id, usage={"prompt_tokens": 10, "completion_tokens": 2, "step_count": 1})
    expected = [(500, "the callback was answered with 500"), (302, "the callback was answered with 302"), (204, "")]
    for status, error in expected:
        assert await _deliver(world) == 1
        run = await _get(world, run_id)
        assert (run.callback_status_code, run.callback_error, run.callback_url) == (status, error, receiver.url)
        assert run.HasField("callback_sent_at")
    assert await world.pool.fetchval(PENDING) == 0
    assert len({body for _, body in receiver.received}) == 1
    headers, body = receiver.received[-1]
    assert headers[""] == "POST /hook?key=1 HTTP/1.1"
    assert headers["x-loci-run-id"] == to_public("run", run_id)
    seconds, given = (part.partition("=")[2] for part in headers["x-loci-signature"].split(","))
    assert hmac.new(SECRET, f"{seconds}.".encode() + body, hashlib.sha256).hexdigest() == given
    told = orjson.loads(body)
    assert (told["run_id"], told["agent_id"]) == (to_public("run", run_id), to_public("agent", agent_id))
    assert (told["status"], told["stop_reason"], told["conversation_id"]) == ("completed", "end_turn", None)
    assert told["usage"]["total_tokens"] == 12
    assert told["completed_at"] == moment(run.completed_at)


@pytest.mark.parametrize("microseconds", [123456, 123450, 123000, 500000, 10, 0])
async def test_the_time_has_the_form_of_rest_whatever_its_microseconds(
    world: AdminWorld, receiver: Receiver, microseconds: int
) -> None:
    completed_at = datetime(2026, 11, 21, 9, 30, 0, microseconds, UTC)
    _, run_id = await _run(world, receiver.url)
    await _end(world, run_id, completed_at=completed_at)
    await _deliver(world)
    time = orjson.loads(receiver.received[0][1])["completed_at"]
    assert time == completed_at.isoformat() == moment((await _get(world, run_id)).completed_at)


async def test_the_pause_grows_and_after_eight_attempts_the_callback_is_given_up(
    world: AdminWorld, receiver: Receiver
) -> None:
    receiver.statuses = [503] * 20
    _, run_id = await _run(world, receiver.url)
    await _end(world, run_id)
    for pause in (1, 2, 4, 8, 16, 32, 64):
        began = await world.pool.fetchval("SELECT clock_timestamp()")
        assert await _deliver(world) == 1
        ended = await world.pool.fetchval("SELECT clock_timestamp()")
        # It is counted from the attempt, which was between the two.
        again = await world.pool.fetchval("SELECT not_before FROM agent.outbox")
        assert began <= again - timedelta(seconds=pause) <= ended
    assert [await _deliver(world), await _deliver(world)] == [1, 0]
    assert len(receiver.received) == 8
    assert (await _get(world, run_id)).callback_error == "the callback was answered with 503"


async def test_nobody_is_there(world: AdminWorld, unused_tcp_port: int) -> None:
    _, run_id = await _run(world, f"http://127.0.0.1:{unused_tcp_port}/")
    await _end(world, run_id)
    await _deliver(world)
    run = await _get(world, run_id)
    assert not run.HasField("callback_status_code")
    assert run.callback_error.startswith("the callback could not be made: ")


async def test_a_run_whose_end_is_rolled_back_orders_nothing(world: AdminWorld, receiver: Receiver) -> None:
    _, run_id = await _run(world, receiver.url)
    connection = await world.pool.acquire()
    transaction = connection.transaction()
    await transaction.start()
    await connection.execute("UPDATE agent.runs SET status = 'failed' WHERE id = $1", run_id)
    await transaction.rollback()
    await world.pool.release(connection)
    assert await world.pool.fetchval(PENDING) == 0


async def test_each_end_orders_once_and_only_where_it_was_asked_for(world: AdminWorld, receiver: Receiver) -> None:
    _, asked = await _run(world, receiver.url)
    _, silent = await _run(world, None)
    for run_id in (asked, silent):
        await _end(world, run_id)
        # Later changes of the row are none of its end.
        await _end(world, run_id)
    assert await world.pool.fetchval(PENDING) == 1


async def test_a_run_that_is_cancelled_in_the_line(world: AdminWorld, receiver: Receiver) -> None:
    agent_id, run_id = await _run(world, receiver.url, "created")
    await world.pool.execute(
        "INSERT INTO agent.conversation_line (organization_id, conversation_id, run_id, schema_version, input)"
        " VALUES ($1, $2, $3, 1, '{}')",
        ORGANIZATION, agent_id, run_id,
    )  # fmt: skip
    await world.pool.execute("UPDATE agent.conversation_heads SET waiting = 1")
    request = wire.CancelRunsRequest(agent_id=to_public("agent", agent_id))
    (run,) = (await world.call(world.runs.CancelRuns, request)).runs
    assert run.status == run_pb2.RUN_STATUS_CANCELLED
    assert await _deliver(world) == 1
    assert orjson.loads(receiver.received[0][1])["stop_reason"] == "cancelled"


async def test_a_run_that_is_given_up(world: AdminWorld, receiver: Receiver) -> None:
    _, run_id = await _run(world, receiver.url)
    failure = Failure(StopReason.ERROR, "internal_error", "It stopped its worker.", reason="RUN_GIVEN_UP")
    leases = PostgresLeases(world.pool, uuid7())
    await leases.give_up({"organization_id": ORGANIZATION, "id": run_id, "fence": 0, "facts": 1}, failure)
    assert await _deliver(world) == 1
    told = orjson.loads(receiver.received[0][1])
    assert (told["status"], told["error"]["reason"]) == ("failed", "RUN_GIVEN_UP")
    run = await _get(world, run_id)
    assert orjson.loads(run.metadata_json) == told["metadata"]


async def test_the_callback_outlives_its_agent(world: AdminWorld, receiver: Receiver) -> None:
    agent_id, run_id = await _run(world, receiver.url, "created")
    request = agent_wire.DeleteAgentRequest(agent_id=to_public("agent", agent_id))
    await world.call(world.agents.DeleteAgent, request)
    await world.deliver()
    assert orjson.loads(receiver.received[0][1])["run_id"] == to_public("run", run_id)
    assert await world.rows("runs") == 0
    assert await world.rows("outbox") == 0


async def test_slow_receivers_hold_up_nothing_else(world: AdminWorld, receiver: Receiver) -> None:
    _, run_id = await _run(world, receiver.url)
    await _end(world, run_id)
    assert await world.built.deliveries.deliver_due() == 0
    assert receiver.received == []


@pytest.mark.parametrize("url", ["http://example.com/", "https://user:secret@example.com/", "x", ""])
async def test_urls_that_are_refused_with_the_request(world: AdminWorld, url: str) -> None:
    agent = await world.create()
    with pytest.raises(InvalidArgument, match="`callback_url`: ") as caught:
        await _say(world, agent.id, url)
    assert (caught.value.reason, await world.rows("runs")) == ("CALLBACK_URL_INVALID", 0)


async def test_a_turn_reports_its_end(world: AdminWorld, receiver: Receiver) -> None:
    end = (await _say(world, (await world.create()).id, receiver.url)).end
    assert await _deliver(world) == 1
    told = orjson.loads(receiver.received[0][1])
    assert (told["run_id"], told["status"], told["usage"]["total_tokens"]) == (end.run.id, "completed", 12)


async def _say(world: AdminWorld, agent_id: str, url: str) -> message_wire.SendMessagesResponse:
    """A turn with a callback."""
    message = message_pb2.InputMessage(content=[message_pb2.ContentPart(text="Hello")])
    options = message_wire.TurnOptions(callback_url=url)
    turn = message_wire.TurnRequest(agent_id=agent_id, messages=[message], options=options)
    request = message_wire.SendMessagesRequest(turn=turn)
    response: message_wire.SendMessagesResponse = await world.call(world.messages.SendMessages, request)
    return response


async def _run(world: AdminWorld, url: str | None, status: str = "running") -> tuple[UUID, UUID]:
    """A stored run of a new agent, with a callback."""
    agent_id, run_id = from_public("agent", (await world.create()).id), uuid7()
    options: dict[str, Any] = {"max_steps": 50} | ({} if url is None else {"callback_url": url})
    # Owned by a replica that lives, so that ours does not take it up.
    owner = await world.pool.fetchval(
        "INSERT INTO agent.workers (id, beat_at) VALUES ($1, now() + interval '1 hour') RETURNING id", uuid7()
    )
    await world.pool.execute(
        "INSERT INTO agent.runs (organization_id, id, agent_id, conversation_id, user_id, status, home_id, deadline,"
        " options, started_at, worker_id)"
        " VALUES ($1, $2, $3, $3, $4, $5, $6, now() + interval '1 hour', $7, now(), $6)",
        ORGANIZATION, run_id, agent_id, USER, status, owner, options,
    )  # fmt: skip
    return agent_id, run_id


async def _end(world: AdminWorld, run_id: UUID, **columns: Any) -> None:
    await world.pool.execute(
        "UPDATE agent.runs SET status = 'completed', stop_reason = 'end_turn',"
        " completed_at = coalesce($3, clock_timestamp()), usage = $2 WHERE id = $1",
        run_id,
        columns.get("usage", {}),
        columns.get("completed_at"),
    )


async def _deliver(world: AdminWorld) -> int:
    """Delivers what waits, however long it should; how many orders that were."""
    await world.pool.execute("UPDATE agent.outbox SET not_before = now()")
    return await world.built.callbacks.deliver_due()


async def _get(world: AdminWorld, run_id: UUID) -> run_pb2.Run:
    request = wire.GetRunRequest(run_id=to_public("run", run_id))
    run: run_pb2.Run = (await world.call(world.runs.GetRun, request)).run
    return run
