"""Usage that is stored and reported, and budgets: the gateway on a real Postgres, with fakes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import grpc
import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from loci.llm.v1 import chat_pb2
from loci.llm.v1 import usage_service_pb2 as usage_pb
from loci.llm.v1.chat_service_pb2 import GenerateRequest
from services.common.database import open_pool
from services.common.errors import LociError, from_rpc
from services.common.ids import uuid7
from services.llm_gateway.calls import gate
from services.llm_gateway.usage import store as module
from services.llm_gateway.usage.model import UsageRow
from services.llm_gateway.usage.retention import Retention
from services.llm_gateway.usage.store import PostgresUsageReports, PostgresUsageStore
from tests.fakes.anthropic_server import AnthropicServer
from tests.fakes.openai_server import OpenAIServer
from tests.fakes.script import Reply, Usage
from tests.integration.llm_gateway.harness import AGENT, Gateway, gateway_service, generation
from tests.polling import until

OPENAI, ANTHROPIC, DEMO = "openai/gpt-4o-mini", "anthropic/claude-haiku-4-5", "loci/demo"
# 2 dollars for a million tokens of input, 10 for output, half a dollar where it was cached.
PRICES = {"LOCI_PRICES": '{"openai/*": {"input": 2, "output": 10, "cached_input": 0.5}}'}
RUN = f"run-{UUID(int=3)}"
DAY, HOUR = usage_pb.BUDGET_PERIOD_DAY, usage_pb.BUDGET_PERIOD_HOUR


def row(tenant: UUID, **fields: Any) -> UsageRow:
    given: dict[str, Any] = {
        "kind": "chat",
        "handle": OPENAI,
        "run_id": None,
        "step_id": None,
        "agent_id": None,
        "prompt_tokens": 100,
        "completion_tokens": 10,
        "cached_input_tokens": None,
        "cache_write_tokens": None,
        "reasoning_tokens": None,
        "estimated": False,
        "provider_model": "gpt",
        "milliseconds": 5,
        "created_at": datetime.now(UTC),
        "cost_nanos_usd": 1_000,
    }
    return UsageRow(organization_id=tenant, id=uuid7(), **given | fields)


async def refused(call: Any) -> LociError:
    with pytest.raises(grpc.RpcError) as caught:
        await call
    return from_rpc(caught.value)


async def report(gateway: Gateway, *groups: usage_pb.UsageGroup.ValueType, **fields: Any) -> Any:
    return await gateway.spending.ReportUsage(usage_pb.ReportUsageRequest(group_by=groups, **fields))


async def spend(gateway: Gateway, period: usage_pb.BudgetPeriod.ValueType, **limits: int) -> usage_pb.BudgetState:
    asked = usage_pb.SetBudgetRequest(budget=usage_pb.Budget(period=period, **limits))
    state: usage_pb.BudgetState = (await gateway.spending.SetBudget(asked)).budget
    return state


@asynccontextmanager
async def limited(url: str, folder: Path, openai: OpenAIServer, **settings: str) -> AsyncIterator[Gateway]:
    """A gateway of the operator's with budgets or fallbacks."""
    async with gateway_service(url, folder, {"OPENAI_BASE_URL": openai.base_url, **PRICES, **settings}) as service:
        yield service


@pytest.fixture
async def gateway(
    gateway_url: str, tmp_path: Path, openai_fake: OpenAIServer, anthropic_fake: AnthropicServer
) -> AsyncIterator[Gateway]:
    """One with prices of its own, whatever the table says."""
    async with limited(gateway_url, tmp_path, openai_fake, ANTHROPIC_BASE_URL=anthropic_fake.base_url) as service:
        yield service


async def test_a_row_is_counted_once_in_its_hour(gateway: Gateway) -> None:
    tenant, store = gateway.caller.organization_id, PostgresUsageStore(gateway.pool)
    then = datetime(2026, 11, 21, 14, 59, 59, tzinfo=UTC)
    rows = [
        row(tenant, created_at=then),
        row(tenant, created_at=then + timedelta(seconds=1), cost_nanos_usd=None),
        row(tenant, created_at=then + timedelta(minutes=5)),
    ]
    await store.write(rows)
    await store.write([*rows, row(tenant, created_at=then)])
    kept = await gateway.pool.fetch(
        "SELECT hour, requests, tokens, cost_nanos_usd FROM llm_gateway.usage_hours WHERE organization_id = $1"
        " ORDER BY hour",
        tenant,
    )
    assert [tuple(one) for one in kept] == [
        (then.replace(minute=0, second=0), 2, 220, 2_000),
        (then.replace(hour=15, minute=0, second=0), 2, 220, 1_000),
    ]


async def test_what_replicas_write_at_the_same_time_adds_up(gateway: Gateway) -> None:
    tenants = [uuid4() for _ in range(5)]
    store = PostgresUsageStore(gateway.pool)
    batches = [[row(tenant) for tenant in sorted(tenants, key=lambda _: n)] for n in range(20)]
    batches = [batch[::-1] if n % 2 else batch for n, batch in enumerate(batches)]
    await asyncio.gather(*(store.write(batch) for batch in batches))
    kept = await gateway.pool.fetch(
        "SELECT sum(requests) AS requests FROM llm_gateway.usage_hours WHERE organization_id = ANY($1)"
        " GROUP BY organization_id",
        tenants,
    )
    assert [one["requests"] for one in kept] == [20] * 5


async def test_a_run_is_told_with_what_was_not_written_yet(
    gateway: Gateway, openai_fake: OpenAIServer, anthropic_fake: AnthropicServer
) -> None:
    openai_fake.reply(Reply(text="a", usage=Usage(1_000, 100, cached=400)))
    anthropic_fake.reply(Reply(text="a", usage=Usage(50, 5)))
    whole = await gateway.generate(OPENAI)
    await gateway.generate(ANTHROPIC)
    await gateway.generate(DEMO)
    found = await gateway.spending.GetRunUsage(usage_pb.GetRunUsageRequest(run_id=RUN))
    assert (found.totals.requests, found.totals.cached_input_tokens) == (3, 400)
    by_model = {one.group[0]: one.totals for one in found.by_model}
    assert by_model[OPENAI].prompt_tokens == 1_000
    assert by_model[OPENAI].cost_nanos_usd == whole.cost_nanos_usd == 600 * 2_000 + 400 * 500 + 100 * 10_000
    assert found.totals.cost_nanos_usd == sum(one.cost_nanos_usd for one in by_model.values())
    none = await gateway.spending.GetRunUsage(usage_pb.GetRunUsageRequest(run_id=f"run-{uuid4()}"))
    assert (none.totals, list(none.by_model)) == (usage_pb.UsageTotals(), [])


async def test_reports(gateway: Gateway) -> None:
    tenant, other = gateway.caller.organization_id, uuid4()
    noon = datetime.now(UTC).replace(hour=12, minute=0, second=0, microsecond=0) - timedelta(days=2)
    agent = UUID(int=5)
    rows = [
        row(tenant, created_at=noon, agent_id=agent),
        row(tenant, created_at=noon + timedelta(hours=1), handle=ANTHROPIC, cost_nanos_usd=9_000),
        row(tenant, created_at=noon + timedelta(hours=13), kind="embedding", estimated=True, cost_nanos_usd=None),
        row(tenant, created_at=noon - timedelta(days=40)),
        row(other, created_at=noon),
    ]
    await PostgresUsageStore(gateway.pool).write(rows)
    whole = await report(gateway)
    assert (whole.totals.requests, whole.totals.cost_nanos_usd, whole.totals.unpriced_requests) == (3, 10_000, 1)
    assert [list(one.group) for one in whole.rows] == [[]]
    assert whole.rows[0].totals == whole.totals
    by_day = await report(gateway, usage_pb.USAGE_GROUP_DAY, usage_pb.USAGE_GROUP_MODEL)
    today, tomorrow = noon.strftime("%Y-%m-%d"), (noon + timedelta(days=1)).strftime("%Y-%m-%d")
    assert [list(one.group) for one in by_day.rows] == [[today, ANTHROPIC], [today, OPENAI], [tomorrow, OPENAI]]
    by_hour = await report(gateway, usage_pb.USAGE_GROUP_HOUR, since=_stamp(noon), until=_stamp(noon + timedelta(1)))
    assert [one.group[0] for one in by_hour.rows] == [
        f"{today}T12:00:00Z",
        f"{today}T13:00:00Z",
        f"{tomorrow}T01:00:00Z",
    ]
    by_agent = await report(
        gateway, usage_pb.USAGE_GROUP_AGENT, usage_pb.USAGE_GROUP_KIND, usage_pb.USAGE_GROUP_PROVIDER
    )
    assert sorted(list(one.group) for one in by_agent.rows) == [
        ["", "chat", "anthropic"],
        ["", "embedding", "openai"],
        [AGENT, "chat", "openai"],
    ]
    assert (await report(gateway, agent_id=AGENT)).totals.requests == 1
    assert (await report(gateway, handle=ANTHROPIC)).totals.requests == 1
    assert (await report(gateway, kind="embedding")).totals.estimated_requests == 1
    error = await refused(report(gateway, usage_pb.USAGE_GROUP_HOUR, since=_stamp(noon - timedelta(days=40))))
    assert (error.code, error.reason) == (grpc.StatusCode.INVALID_ARGUMENT, "USAGE_QUERY_INVALID")


def _stamp(moment: datetime) -> Timestamp:
    stamp = Timestamp()
    stamp.FromDatetime(moment)
    return stamp


async def test_a_report_of_too_many_rows_says_so(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_ROWS", 3)
    rows = [row(gateway.caller.organization_id, handle=f"openai/{n}", cost_nanos_usd=n) for n in range(5)]
    await PostgresUsageStore(gateway.pool).write(rows)
    found = await report(gateway, usage_pb.USAGE_GROUP_MODEL)
    assert [one.group[0] for one in found.rows] == ["openai/4", "openai/3", "openai/2"]
    assert (found.truncated, found.totals.requests) == (True, 5)


async def test_of_200_calls_at_once_a_budget_of_10_lets_exactly_10_go(
    gateway: Gateway, openai_fake: OpenAIServer
) -> None:
    await gateway.generate(OPENAI)
    state = await spend(gateway, DAY, max_requests=11)
    assert (state.spent.requests, state.operators) == (1, False)
    openai_fake.rules()
    outcomes = await asyncio.gather(*(gateway.generate(OPENAI) for _ in range(200)), return_exceptions=True)
    errors = [from_rpc(one) for one in outcomes if isinstance(one, grpc.RpcError)]
    assert (len(errors), len(openai_fake.bodies("/chat/completions"))) == (190, 11)
    assert {(one.code, one.reason) for one in errors} == {(grpc.StatusCode.RESOURCE_EXHAUSTED, "LLM_BUDGET_EXHAUSTED")}
    assert errors[0].metadata["limit_of"] == "requests"
    assert errors[0].metadata["resets_at"].endswith("T00:00:00Z")
    [listed] = (await gateway.spending.ListBudgets(usage_pb.ListBudgetsRequest())).budgets
    assert listed.spent.requests == 11
    await gateway.spending.DeleteBudget(usage_pb.DeleteBudgetRequest(period=DAY))
    await gateway.generate(OPENAI)
    error = await refused(gateway.spending.DeleteBudget(usage_pb.DeleteBudgetRequest(period=DAY)))
    assert error.reason == "BUDGET_NOT_FOUND"


async def test_another_process_knows_what_was_spent(
    gateway: Gateway, gateway_url: str, tmp_path: Path, openai_fake: OpenAIServer
) -> None:
    await spend(gateway, HOUR, max_tokens=1_000)
    openai_fake.reply(Reply(text="a", usage=Usage(900, 90)))
    await gateway.generate(OPENAI)
    await gateway.built.usage.flush()
    folder = tmp_path / "two"
    folder.mkdir()
    urls = {"OPENAI_BASE_URL": openai_fake.base_url}
    async with gateway_service(gateway_url, folder, urls, organization_id=gateway.caller.organization_id) as second:
        error = await refused(second.generate(OPENAI, "words " * 20))
    assert (error.reason, error.metadata["limit_of"]) == ("LLM_BUDGET_EXHAUSTED", "tokens")
    # Embeddings are calls like others.
    assert (await refused(gateway.embed("loci/hash", "words " * 20))).reason == "LLM_BUDGET_EXHAUSTED"


@pytest.mark.parametrize("budget", [usage_pb.Budget(period=DAY), usage_pb.Budget(period=DAY, max_tokens=-1)])
async def test_budgets_that_cannot_be(gateway: Gateway, budget: usage_pb.Budget) -> None:
    error = await refused(gateway.spending.SetBudget(usage_pb.SetBudgetRequest(budget=budget)))
    assert (error.code, error.reason) == (grpc.StatusCode.INVALID_ARGUMENT, "BUDGET_INVALID")
    none = usage_pb.Budget(max_tokens=5)
    error = await refused(gateway.spending.SetBudget(usage_pb.SetBudgetRequest(budget=none)))
    assert error.reason == "BUDGET_INVALID"


async def test_the_operators_budgets_and_money(gateway_url: str, tmp_path: Path, openai_fake: OpenAIServer) -> None:
    async with limited(
        gateway_url, tmp_path, openai_fake, LOCI_BUDGETS='{"month": {"usd": 0.001}, "day": {"requests": 50}}'
    ) as gateway:
        openai_fake.reply(Reply(text="a", usage=Usage(1_000_000, 0)))
        made = await gateway.generate(OPENAI)
        assert made.cost_nanos_usd == 2_000_000_000
        error = await refused(gateway.generate(OPENAI))
        assert (error.metadata["period"], error.metadata["limit_of"]) == ("month", "usd")
        # A model that costs nothing goes on.
        await gateway.generate(DEMO)
        listed = (await gateway.spending.ListBudgets(usage_pb.ListBudgetsRequest())).budgets
        assert [(one.operators, one.spent.requests) for one in listed] == [(True, 2), (True, 2)]
        assert listed[0].spent.cost_nanos_usd == made.cost_nanos_usd


async def test_a_stream_that_is_cancelled_is_accounted_by_estimate(gateway: Gateway, openai_fake: OpenAIServer) -> None:
    openai_fake.reply(Reply(text="word " * 1_000, delta_delay=0.06))
    call = gateway.stream(OPENAI)
    await call.read()
    call.cancel()
    [kept] = await gateway.accounted()
    assert (kept["estimated"], kept["prompt_tokens"] > 0, kept["completion_tokens"] > 0) == (True, True, True)
    assert kept["cost_nanos_usd"] > 0


async def test_a_fallback_is_seen_by_the_caller_and_paid_for_as_itself(
    gateway_url: str, tmp_path: Path, openai_fake: OpenAIServer
) -> None:
    async with limited(
        gateway_url,
        tmp_path,
        openai_fake,
        LOCI_FALLBACKS='{"openai/gpt-4o": ["openai/gpt-4o-mini"]}',
        LOCI_LLM_RETRIES="0",
    ) as gateway:
        for stream in (False, True):
            openai_fake.reply(Reply(error="overloaded"), Reply(text="I do."))
            made = await gateway.outcome("openai/gpt-4o", stream=stream)
            assert (made.handle, made.message.parts[0].text.text) == (OPENAI, "I do.")
            assert [(one.handle, one.reason) for one in made.failed_tries] == [("openai/gpt-4o", "LLM_SERVER_ERROR")]
        assert {one["handle"] for one in await gateway.usage()} == {OPENAI}
        openai_fake.reply(Reply(error="overloaded"), Reply(error="authentication"))
        error = await refused(gateway.generate("openai/gpt-4o"))
        assert (error.reason, error.metadata["fallbacks"]) == (
            "LLM_SERVER_ERROR",
            "openai/gpt-4o-mini (LLM_AUTHENTICATION)",
        )


async def test_a_fallback_of_another_vendor_takes_the_history_and_the_settings(
    gateway: Gateway, openai_fake: OpenAIServer, anthropic_fake: AnthropicServer
) -> None:
    odd = "functions.roll_dice:0"  # an id that Anthropic refuses as it is
    call = chat_pb2.ToolCallPart(id=odd, name="roll_dice", arguments_json="{}")
    rolled = chat_pb2.ToolResultPart(tool_call_id=odd, content=[chat_pb2.ChatPart(text=chat_pb2.TextPart(text="6"))])
    history = [
        *generation(OPENAI, "Roll.").messages,
        chat_pb2.ChatMessage(role=chat_pb2.CHAT_ROLE_ASSISTANT, parts=[chat_pb2.ChatPart(tool_call=call)]),
        chat_pb2.ChatMessage(role=chat_pb2.CHAT_ROLE_TOOL, parts=[chat_pb2.ChatPart(tool_result=rolled)]),
    ]
    asked: dict[str, Any] = {
        "messages": history,
        "tools": [chat_pb2.ToolSpec(name="roll_dice", description="Roll.", parameters_json='{"type":"object"}')],
        "settings_json": '{"verbosity": "low"}',
        "fallback_handles": [ANTHROPIC],
    }
    openai_fake.reply(Reply(error="quota"))
    anthropic_fake.reply(Reply(text="Six."))
    made = await gateway.generate(OPENAI, **asked)
    assert (made.handle, made.message.parts[0].text.text) == (ANTHROPIC, "Six.")
    assert [one.reason for one in made.failed_tries] == ["LLM_QUOTA_EXHAUSTED"]
    [body] = anthropic_fake.bodies("/messages")
    used, result = body["messages"][1]["content"][0], body["messages"][2]["content"][0]
    assert used["id"] == result["tool_use_id"]
    assert "verbosity" not in body


async def test_one_slow_provider_delays_nobody_elses_calls(
    gateway_url: str,
    tmp_path: Path,
    openai_fake: OpenAIServer,
    anthropic_fake: AnthropicServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gate, "_EARLY_SECONDS", 20.0)  # whoever is late in line hears so before its deadline
    settings = {"ANTHROPIC_BASE_URL": anthropic_fake.base_url, "LOCI_LLM_CONCURRENCY": "2", "LOCI_LLM_QUEUE": "4"}
    async with limited(gateway_url, tmp_path, openai_fake, **settings) as gateway:
        await gateway.generate(OPENAI)
        await gateway.generate(ANTHROPIC)
        openai_fake.reset()
        openai_fake.reply(*[Reply(hang=True)] * 2)
        slow = [asyncio.create_task(gateway.generate(OPENAI)) for _ in range(5)]
        async with asyncio.timeout(60):
            await until(lambda: len(openai_fake.bodies("/chat/completions")) == 2)
            replies = await asyncio.gather(*(gateway.generate(ANTHROPIC) for _ in range(5)))
            assert len(replies) == 5
            # Two run and three wait, so that one more may, until its own deadline.
            late = await refused(gateway.chat.Generate(GenerateRequest(request=generation(OPENAI)), timeout=20.5))
            assert (late.reason, "waited in line for openai" in late.message) == ("LLM_TIMEOUT", True)
            # With four in line there is no room for a fifth. What was sent before is in line when the next is answered.
            slow.append(asyncio.create_task(gateway.generate(OPENAI)))
            await gateway.generate(ANTHROPIC)
            full = await refused(gateway.generate(OPENAI))
        assert (full.code, full.reason) == (grpc.StatusCode.UNAVAILABLE, "LLM_QUEUE_FULL")
        for task in slow:
            task.cancel()
        await asyncio.wait(slow)
        async with asyncio.timeout(20):
            await gateway.generate(OPENAI)


async def test_an_endpoint_that_fails_again_and_again_is_left_alone(
    gateway_url: str, tmp_path: Path, openai_fake: OpenAIServer
) -> None:
    async with limited(gateway_url, tmp_path, openai_fake, LOCI_LLM_RETRIES="0") as gateway:
        openai_fake.reply(*[Reply(error="overloaded")] * 5)
        for _ in range(5):
            assert (await refused(gateway.generate(OPENAI))).reason == "LLM_SERVER_ERROR"
        error = await refused(gateway.generate(OPENAI))
        assert (error.code, error.reason) == (grpc.StatusCode.UNAVAILABLE, "LLM_CIRCUIT_OPEN")
        assert 0 < float(error.metadata["retry_after"]) <= 5
        assert len(openai_fake.bodies("/chat/completions")) == 5


async def test_old_calls_are_forgotten_and_their_sums_are_not(gateway_url: str) -> None:
    async with await open_pool(gateway_url, size=2) as pool:
        tenants, now = [uuid4() for _ in range(3)], datetime.now(UTC)
        store, reports = PostgresUsageStore(pool), PostgresUsageReports(pool)
        old = [row(tenant, created_at=now - timedelta(days=401)) for tenant in tenants for _ in range(1_200)]
        young = [row(tenant, created_at=now - timedelta(days=399)) for tenant in tenants]
        await store.write([*old, *young])
        assert await Retention(reports, 400).run_once() == 3_600
        left = await pool.fetchval("SELECT count(*) FROM llm_gateway.usage WHERE organization_id = ANY($1)", tenants)
        kept = await pool.fetchval(
            "SELECT sum(requests) FROM llm_gateway.usage_hours WHERE organization_id = ANY($1)", tenants
        )
        assert (left, kept) == (3, 3_603)
        assert await Retention(reports, 400).run_once() == 0
