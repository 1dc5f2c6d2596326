"""A fault of ours ends the run that meets it, soon and in words, and costs nobody else anything."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from uuid import UUID

import asyncpg
import pytest

from services.agent.core.facts import ClientTool, Failure, RunStatus, StopReason, Usage
from services.agent.core.messages import Call, Decision, Return, Text
from services.agent.core.policy import POLICIES
from services.agent.core.ports import ModelRequest, PartDelta, PeerLost, Reply, ToolInfo
from services.agent.core.releases import NewerRelease
from services.agent.core.turn import CANCELLED, OVERDUE
from services.agent.core.window.context import UNANSWERED
from services.agent.driving.faults import is_transient
from services.agent.driving.worker import MOST_FAULTS
from services.common.errors import Internal, Unavailable
from tests.integration.agent.world import ORGANIZATION, SECONDS, Replica, World, calls, end, shown, text
from tests.polling import until


@pytest.mark.parametrize(
    ("error", "does"),
    [
        (TypeError("ours"), False),
        (Internal("theirs, and it comes again"), False),
        (asyncpg.UntranslatableCharacterError("NUL"), False),
        (asyncpg.UniqueViolationError("twice"), False),
        (asyncpg.ProgramLimitExceededError("too large"), False),
        (asyncpg.CannotConnectNowError("starting"), True),
        (asyncpg.DeadlockDetectedError("again"), True),
        (asyncpg.InterfaceError("connection is closed"), True),
        (ConnectionResetError(), True),
        (TimeoutError(), True),
        (PeerLost("gone"), True),
        (Unavailable("gone"), True),
        (NewerRelease("99"), True),
    ],
)
def test_which_errors_pass(error: Exception, does: bool) -> None:
    assert is_transient(error) is does


async def test_a_fault_is_met_twice_and_the_next_in_line_goes_on(world: World) -> None:
    async with world.replica() as replica:
        replica.models.replies = [RuntimeError("a fault")] * MOST_FAULTS + [text("Here.")]
        first, second = asyncio.create_task(replica.send(world.request("one"))), world.request("two")
        await until(lambda: replica.models.requests, SECONDS)
        assert end(await replica.send(second)).run.status is RunStatus.COMPLETED
        ended = end(await first)
        assert len(replica.models.requests) == MOST_FAULTS + 1
        assert not replica.worker._dropped
    assert (ended.run.status, ended.run.stop_reason) == (RunStatus.FAILED, StopReason.ERROR)
    assert ended.failure is not None
    assert (ended.failure.error_type, ended.failure.reason) == ("internal_error", "RUN_GIVEN_UP")
    assert [said for role, said in await world.history() if role == "user"] == ["one", "two"]


async def test_what_passes_is_tried_again(world: World) -> None:
    async with world.replica() as replica:
        replica.models.replies = [ConnectionResetError()] * (MOST_FAULTS + 1) + [text("Here.")]
        assert end(await replica.send(world.request())).run.status is RunStatus.COMPLETED


async def test_a_run_whose_settings_nobody_understands_ends(world: World) -> None:
    async with world.replica() as replica:
        await world.pool.execute(
            "UPDATE agent.agents SET tool_rules = $2 WHERE id = $1", world.agent_id, [{"type": "unheard_of"}]
        )
        request = world.request()
        with pytest.raises((KeyError, ValueError)):
            await replica.send(request)
        async with asyncio.timeout(SECONDS):
            ended = end([each async for each in replica.reader.follow(request.organization_id, request.run_id)])
        assert ended.failure is not None
        assert ended.failure.reason == "RUN_GIVEN_UP"
        await world.pool.execute("UPDATE agent.agents SET tool_rules = '[]' WHERE id = $1", world.agent_id)
        assert end(await replica.send(world.request())).run.status is RunStatus.COMPLETED


async def test_tools_that_are_not_to_be_had_when_an_answer_comes(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    async def down(tool_ids: Sequence[UUID]) -> tuple[ToolInfo, ...]:
        raise Unavailable("The tool runner is away.", reason="PEER_UNAVAILABLE")

    async def never(call: Call) -> str:
        raise AssertionError(call)

    rules = [{"type": "requires_approval", "tool_name": name} for name in ("one", "two")]
    await world.add_agent(tool_rules=rules)
    async with world.replica() as replica:
        replica.tools.actions = {"one": never, "two": never}
        replica.models.replies = [calls("one", "two")]
        await replica.send(world.request())
        with monkeypatch.context() as patch:
            patch.setattr(replica.tools, "describe", down)
            ended = end(await replica.send(world.answer(Decision("call_0", True), Decision("call_1", False, "no"))))
        assert (ended.run.status, ended.run.fence) == (RunStatus.FAILED, 1)
        replica.models.requests.clear()
        assert end(await replica.send(world.request("And now?"))).run.status is RunStatus.COMPLETED
        returns = [part for one in replica.models.requests[0].history for part in one.parts if isinstance(part, Return)]
    assert [(part.is_error, part.text) for part in returns] == [
        (True, "one did not answer: The tool runner is away. It may or may not have taken effect."),
        (True, "This call was denied. Reason: no"),
    ]


async def interrupt(world: World, replica: Replica, run_id: UUID, by: Failure) -> None:
    """Ends a run as its user does, or its time limit, which is not waited for."""
    if by is CANCELLED:
        await replica.worker.cancel(ORGANIZATION, [(run_id, world.agent_id)])
    else:
        assert replica.worker.interrupt(run_id, by)


@pytest.mark.parametrize("by", [CANCELLED, OVERDUE], ids=["a cancel", "its time limit"])
async def test_what_has_returned_outlives_an_interruption(world: World, by: Failure) -> None:
    hangs = asyncio.Event()

    async def quick(call: Call) -> str:
        return "It is done."

    async def hang(call: Call) -> str:
        hangs.set()
        await asyncio.Event().wait()
        return "never"

    async with world.replica() as replica:
        replica.tools.actions, replica.tools.parallel = {"quick": quick, "hang": hang}, frozenset({"quick", "hang"})
        replica.models.replies = [calls("quick", "hang", "quick")]
        request = world.request()
        sending = asyncio.create_task(replica.send(request))
        await asyncio.wait_for(hangs.wait(), SECONDS)
        await interrupt(world, replica, request.run_id, by)
        events = await sending
        assert shown(events) == ["assistant", "tool"]
        assert end(events).run.status is (RunStatus.CANCELLED if by is CANCELLED else RunStatus.FAILED)
        assert replica.tools.cancelled
        await replica.send(world.request("And now?"))
        returns = [
            part for one in replica.models.requests[-1].history for part in one.parts if isinstance(part, Return)
        ]
    assert [part.text for part in returns] == ["It is done.", UNANSWERED, "It is done."]
    status = await world.pool.fetch("SELECT status FROM agent.steps WHERE run_id = $1", request.run_id)
    assert status == [("cancelled" if by is CANCELLED else "failed",)]


@pytest.mark.parametrize("by", [CANCELLED, OVERDUE], ids=["a cancel", "its time limit"])
async def test_a_model_call_that_is_cut_short_is_a_step(world: World, by: Failure) -> None:
    hangs = asyncio.Event()

    async def hang(request: ModelRequest) -> AsyncGenerator[PartDelta | Reply]:
        yield PartDelta(0, "content", "It be")
        hangs.set()
        await asyncio.Event().wait()

    async def quick(call: Call) -> str:
        return "It is done."

    async with world.replica() as replica:
        replica.tools.actions = {"quick": quick}
        replica.models.replies = [calls("quick"), hang]
        request = world.request()
        sending = asyncio.create_task(replica.send(request))
        await asyncio.wait_for(hangs.wait(), SECONDS)
        await interrupt(world, replica, request.run_id, by)
        ended = end(await sending)
    first, second = await world.pool.fetch(
        "SELECT * FROM agent.steps WHERE run_id = $1 ORDER BY number", request.run_id
    )
    assert (first["status"], first["stop_reason"]) == ("success", None)
    assert (second["number"], second["attempts"], second["usage"], second["prompt_hash"]) == (
        2, 1, {}, first["prompt_hash"],
    )  # fmt: skip
    assert {"llm_request_ns", "ttft_ns"} == second["metrics"].keys()
    if by is CANCELLED:
        assert (second["status"], second["stop_reason"], second["error"]) == ("cancelled", "cancelled", None)
    else:
        assert (second["status"], second["stop_reason"]) == ("failed", "error")
        assert second["error"]["reason"] == "RUN_DEADLINE"
    # What counts as a step of the run is what came of one.
    assert ended.steps == 1


async def test_a_run_that_is_cancelled_between_two_steps_has_no_step_of_it(world: World) -> None:
    async with world.replica() as replica:
        request = world.request()

        async def cancelling(call: Call) -> str:
            await world.pool.execute("UPDATE agent.runs SET cancel_requested = true WHERE id = $1", request.run_id)
            return "It is done."

        replica.tools.actions = {"quick": cancelling}
        replica.models.replies = [calls("quick")]
        assert end(await replica.send(request)).run.status is RunStatus.CANCELLED
    steps = await world.pool.fetch("SELECT number, status FROM agent.steps WHERE run_id = $1", request.run_id)
    assert steps == [(1, "success")]


async def test_log_probabilities_that_cannot_be_stored(world: World) -> None:
    async with world.replica() as replica:
        given = {"logprobs": {"content": [{"token": "a\0b\ud800", "bytes": [97, 0]}]}}
        replica.models.replies = [Reply((Text("Hi"),), Usage(10, 5), "stop", given)]
        ended = end(await replica.send(world.request()))
    assert ended.run.fence == 1
    assert ended.outputs[0]["logprobs"]["content"][0] == {"token": "ab\ufffd", "bytes": [97, 0]}


@pytest.mark.parametrize("agent_type", POLICIES)
async def test_a_client_tool_whose_schema_has_holes(world: World, agent_type: str) -> None:
    await world.add_agent(agent_type=agent_type)
    schema = {"type": "object", "properties": None, "required": None}
    async with world.replica() as replica:
        replica.models.replies = [calls("mine")]
        events = await replica.send(world.request(client_tools=[ClientTool("mine", "", schema)]))
    assert (end(events).run.stop_reason, end(events).run.fence) == (StopReason.REQUIRES_APPROVAL, 1)
