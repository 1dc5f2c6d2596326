"""Usage and budgets over REST, in front of scripted services."""

from typing import Any

import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from loci.agent.v1 import run_service_pb2
from loci.llm.v1 import usage_service_pb2 as usage_pb
from services.common.errors import NotFound, Unavailable
from tests.integration.gateway import samples
from tests.integration.gateway.conftest import Edge
from tests.integration.gateway.samples import AGENT_ID, RUN_ID
from tests.integration.gateway.scripted import Backend

TOTALS = usage_pb.UsageTotals(
    requests=3, prompt_tokens=100, completion_tokens=20, cost_nanos_usd=1_250_000, unpriced_requests=1
)
SHOWN = {
    "requests": 3,
    "prompt_tokens": 100,
    "completion_tokens": 20,
    "total_tokens": 120,
    "cached_input_tokens": 0,
    "cache_write_tokens": 0,
    "reasoning_tokens": 0,
    "estimated_requests": 0,
    "unpriced_requests": 1,
    "cost_usd": 0.00125,
}


def _state(operators: bool = False) -> usage_pb.BudgetState:
    return usage_pb.BudgetState(
        budget=usage_pb.Budget(period=usage_pb.BUDGET_PERIOD_DAY, max_requests=10, max_cost_nanos_usd=5_000_000_000),
        operators=operators,
        spent=usage_pb.BudgetSpent(requests=3, tokens=120, cost_nanos_usd=1_250_000),
        resets_at=Timestamp(seconds=1_795_305_600),
    )


def _shown(operators: bool = False) -> dict[str, Any]:
    return {
        "period": "day",
        "operators": operators,
        "limits": {"usd": 5.0, "tokens": None, "requests": 10},
        "spent": {"usd": 0.00125, "tokens": 120, "requests": 3},
        "resets_at": "2026-11-22T00:00:00+00:00",
    }


async def test_a_run_keeps_the_references_fields_and_tells_what_it_cost(edge: Edge, backend: Backend) -> None:
    usage = samples.turn_end().usage
    backend.on("GetRunUsage", lambda _: run_service_pb2.GetRunUsageResponse(usage=usage))
    before = (await edge.http.get(f"/v1/runs/{RUN_ID}/usage")).json()
    found = await edge.sdk.runs.usage.retrieve(RUN_ID)
    # The gateway of models could not say: the answer is the agent service's.
    assert set(before) == set(type(found).model_fields)
    row = usage_pb.UsageRow(group=["openai/gpt"], totals=TOTALS)
    backend.on("UsageService.GetRunUsage", lambda _: usage_pb.GetRunUsageResponse(totals=TOTALS, by_model=[row]))
    after = (await edge.http.get(f"/v1/runs/{RUN_ID}/usage")).json()
    assert after == before | {
        "cost_usd": 0.00125,
        "requests": 3,
        "unpriced_requests": 1,
        "estimated_requests": 0,
        "by_model": [{"model": "openai/gpt", **SHOWN}],
    }
    assert (await edge.sdk.runs.usage.retrieve(RUN_ID)).total_tokens == found.total_tokens


async def test_without_the_llm_gateway_the_old_answer_stands(edge: Edge, backend: Backend) -> None:
    def away(_: Any) -> Any:
        raise Unavailable("gone", reason="ANY")

    backend.on("GetRunUsage", lambda _: run_service_pb2.GetRunUsageResponse(usage=samples.turn_end().usage))
    backend.on("UsageService.GetRunUsage", away)
    answer = await edge.http.get(f"/v1/runs/{RUN_ID}/usage")
    assert (answer.status_code, "cost_usd" in answer.json()) == (200, False)


async def test_a_report(edge: Edge, backend: Backend) -> None:
    rows = [usage_pb.UsageRow(group=["2026-11-21", ""], totals=TOTALS)]
    backend.on(
        "UsageService.ReportUsage", lambda _: usage_pb.ReportUsageResponse(rows=rows, totals=TOTALS, truncated=True)
    )
    asked = {
        "group_by": ["day", "agent"],
        "start": "2026-11-01T00:00:00+01:00",
        "end": "2026-11-22T00:00:00",
        "agent_id": AGENT_ID,
        "model": "openai/gpt",
        "kind": "chat",
    }
    answer = (await edge.http.get("/v1/usage", params=asked)).json()
    shown = [{"group": {"day": "2026-11-21", "agent": None}, **SHOWN}]
    assert answer == {"totals": SHOWN, "rows": shown, "truncated": True}
    [request] = backend.requests("UsageService.ReportUsage")
    assert list(request.group_by) == [usage_pb.USAGE_GROUP_DAY, usage_pb.USAGE_GROUP_AGENT]
    assert (request.since.ToJsonString(), request.until.ToJsonString()) == (
        "2026-10-31T23:00:00Z",
        "2026-11-22T00:00:00Z",
    )
    assert (request.agent_id, request.handle, request.kind) == (AGENT_ID, "openai/gpt", "chat")


@pytest.mark.parametrize("query", ["group_by=week", "start=never", "agent_id=agent-1", "kind=image"])
async def test_a_report_that_cannot_be(edge: Edge, query: str) -> None:
    assert (await edge.http.get(f"/v1/usage?{query}")).status_code == 422


async def test_budgets(edge: Edge, backend: Backend) -> None:
    states = [_state(operators=True), _state()]
    backend.on("UsageService.ListBudgets", lambda _: usage_pb.ListBudgetsResponse(budgets=states))
    backend.on("UsageService.SetBudget", lambda _: usage_pb.SetBudgetResponse(budget=_state()))
    backend.on("UsageService.DeleteBudget", lambda _: usage_pb.DeleteBudgetResponse())
    assert (await edge.http.get("/v1/budgets")).json() == [_shown(operators=True), _shown()]
    assert (await edge.http.get("/v1/budgets/day")).json() == [_shown(operators=True), _shown()]
    assert (await edge.http.get("/v1/budgets/hour")).json() == []
    assert (await edge.http.put("/v1/budgets/day", json={"usd": 5, "requests": 10})).json() == _shown()
    assert (await edge.http.delete("/v1/budgets/day")).json() is None
    [put] = backend.requests("UsageService.SetBudget")
    assert put.budget == _state().budget
    [gone] = backend.requests("UsageService.DeleteBudget")
    assert gone.period == usage_pb.BUDGET_PERIOD_DAY


async def test_budgets_that_cannot_be(edge: Edge, backend: Backend) -> None:
    bodies: tuple[Any, ...] = ({"usd": 0}, {"usd": "much"}, {"tokens": 2**63}, {"requests": -1}, [])
    for body in bodies:
        assert (await edge.http.put("/v1/budgets/day", json=body)).status_code == 422
    assert (await edge.http.put("/v1/budgets/week", json={"usd": 1})).status_code == 422

    def none(_: Any) -> Any:
        raise NotFound("There is no budget of one day of yours.", reason="BUDGET_NOT_FOUND")

    backend.on("UsageService.DeleteBudget", none)
    assert (await edge.http.delete("/v1/budgets/day")).status_code == 404
