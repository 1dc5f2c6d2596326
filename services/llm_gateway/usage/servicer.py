"""loci.llm.v1.UsageService."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from loci.llm.v1 import usage_service_pb2 as usage_pb
from loci.llm.v1 import usage_service_pb2_grpc as usage_grpc
from services.common.context import current
from services.common.errors import Unavailable
from services.common.ids import from_public, optional_id, to_public
from services.common.timestamps import moment_in, timestamp
from services.llm_gateway.budgets.model import Budget, BudgetState, Period
from services.llm_gateway.budgets.service import Ledger
from services.llm_gateway.core.errors import BudgetInvalid, UsageQueryInvalid
from services.llm_gateway.usage.log import UsageLog
from services.llm_gateway.usage.model import (
    Group,
    Report,
    ReportQuery,
    Row,
    StoreUnavailable,
    Totals,
    UsageReports,
    build_query,
)

_GROUPS = {
    usage_pb.USAGE_GROUP_HOUR: Group.HOUR,
    usage_pb.USAGE_GROUP_DAY: Group.DAY,
    usage_pb.USAGE_GROUP_MODEL: Group.MODEL,
    usage_pb.USAGE_GROUP_PROVIDER: Group.PROVIDER,
    usage_pb.USAGE_GROUP_AGENT: Group.AGENT,
    usage_pb.USAGE_GROUP_KIND: Group.KIND,
}
_PERIODS = {
    usage_pb.BUDGET_PERIOD_MINUTE: Period.MINUTE,
    usage_pb.BUDGET_PERIOD_HOUR: Period.HOUR,
    usage_pb.BUDGET_PERIOD_DAY: Period.DAY,
    usage_pb.BUDGET_PERIOD_MONTH: Period.MONTH,
}
_NUMBERS = {period: number for number, period in _PERIODS.items()}
_TIMES = {Group.HOUR: "%Y-%m-%dT%H:%M:%SZ", Group.DAY: "%Y-%m-%d"}


def report_query(message: usage_pb.ReportUsageRequest, now: datetime) -> ReportQuery:
    """Returns the query. Raises UsageQueryInvalid, InvalidArgument."""
    if unknown := [number for number in message.group_by if number not in _GROUPS]:
        raise UsageQueryInvalid(f"There is nothing numbered {unknown[0]} to group usage by.")
    return build_query(
        moment_in(message, "since", _invalid_time),
        moment_in(message, "until", _invalid_time),
        [_GROUPS[number] for number in message.group_by],
        agent_id=optional_id("agent", message.agent_id),
        handle=message.handle,
        kind=message.kind,
        now=now,
    )


def _invalid_time(name: str, problem: str) -> UsageQueryInvalid:
    return UsageQueryInvalid(f"{name} {problem}.")


def totals_message(totals: Totals) -> usage_pb.UsageTotals:
    """Returns the message of sums."""
    return usage_pb.UsageTotals(**{name: getattr(totals, name) for name in Totals.__dataclass_fields__})


def row_messages(report: Report, groups: Iterable[Group]) -> list[usage_pb.UsageRow]:
    """Returns the rows of a report by these groups."""
    kinds = tuple(groups)
    return [_row_message(row, kinds) for row in report.rows]


def _row_message(row: Row, groups: tuple[Group, ...]) -> usage_pb.UsageRow:
    values = [_text(group, value) for group, value in zip(groups, row.group, strict=True)]
    return usage_pb.UsageRow(group=values, totals=totals_message(row.totals))


def _text(group: Group, value: str | datetime | UUID | None) -> str:
    if isinstance(value, datetime):
        return value.astimezone(UTC).strftime(_TIMES[group])
    return to_public("agent", value) if isinstance(value, UUID) else value or ""


def budget_of(message: usage_pb.Budget) -> Budget:
    """Returns the budget. Raises BudgetInvalid."""
    return Budget(
        period_of(message.period),
        message.max_requests if message.HasField("max_requests") else None,
        message.max_tokens if message.HasField("max_tokens") else None,
        message.max_cost_nanos_usd if message.HasField("max_cost_nanos_usd") else None,
    )


def period_of(number: int) -> Period:
    """Returns the period. Raises BudgetInvalid."""
    period = _PERIODS.get(usage_pb.BudgetPeriod.ValueType(number))
    if period is None:
        raise BudgetInvalid("A budget is for one minute, hour, day or month.")
    return period


def state_message(state: BudgetState) -> usage_pb.BudgetState:
    """Returns the message of a budget and what is spent of it."""
    budget, spent = state.budget, state.spent
    return usage_pb.BudgetState(
        budget=usage_pb.Budget(
            period=_NUMBERS[budget.period],
            max_requests=budget.requests,
            max_tokens=budget.tokens,
            max_cost_nanos_usd=budget.cost,
        ),
        operators=budget.operators,
        spent=usage_pb.BudgetSpent(requests=spent.requests, tokens=spent.tokens, cost_nanos_usd=spent.cost),
        resets_at=timestamp(state.resets_at),
    )


class UsageServicer(usage_grpc.UsageServiceServicer):
    """loci.llm.v1.UsageService."""

    def __init__(self, usage: UsageLog, reports: UsageReports, ledger: Ledger) -> None:
        self._usage = usage
        self._reports = reports
        self._ledger = ledger

    async def GetRunUsage(self, request: usage_pb.GetRunUsageRequest, context: Any) -> usage_pb.GetRunUsageResponse:
        run_id = from_public("run", request.run_id)
        with _database():
            await self._usage.flush()
            report = await self._reports.of_run(current().organization_id, run_id)
        return usage_pb.GetRunUsageResponse(
            totals=totals_message(report.totals), by_model=row_messages(report, (Group.MODEL,))
        )

    async def ReportUsage(self, request: usage_pb.ReportUsageRequest, context: Any) -> usage_pb.ReportUsageResponse:
        query = report_query(request, datetime.now(UTC))
        with _database():
            await self._usage.flush()
            report = await self._reports.report(current().organization_id, query)
        return usage_pb.ReportUsageResponse(
            rows=row_messages(report, query.group_by), totals=totals_message(report.totals), truncated=report.truncated
        )

    async def ListBudgets(self, request: usage_pb.ListBudgetsRequest, context: Any) -> usage_pb.ListBudgetsResponse:
        with _database():
            states = await self._ledger.states(current().organization_id)
        return usage_pb.ListBudgetsResponse(budgets=map(state_message, states))

    async def SetBudget(self, request: usage_pb.SetBudgetRequest, context: Any) -> usage_pb.SetBudgetResponse:
        budget = budget_of(request.budget)
        with _database():
            state = await self._ledger.set(current().organization_id, budget)
        return usage_pb.SetBudgetResponse(budget=state_message(state))

    async def DeleteBudget(self, request: usage_pb.DeleteBudgetRequest, context: Any) -> usage_pb.DeleteBudgetResponse:
        period = period_of(request.period)
        with _database():
            await self._ledger.delete(current().organization_id, period)
        return usage_pb.DeleteBudgetResponse()


@contextmanager
def _database() -> Iterator[None]:
    try:
        yield
    except StoreUnavailable as error:
        raise Unavailable("the database of the llm gateway cannot be reached now; try again") from error
