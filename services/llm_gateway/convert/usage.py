"""Usage reports and budgets, from and to protobuf."""

from collections.abc import Iterable
from datetime import UTC, datetime
from uuid import UUID

from google.protobuf.timestamp_pb2 import Timestamp

from loci.llm.v1 import usage_service_pb2 as usage_pb
from services.common.ids import from_public, to_public
from services.common.timestamps import timestamp
from services.llm_gateway.calling.budgets import Budget, BudgetState, Period
from services.llm_gateway.calling.reports import Group, Report, ReportQuery, Row, Totals, checked_query
from services.llm_gateway.errors import BudgetInvalid, UsageQueryInvalid

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
    """Raises UsageQueryInvalid, InvalidArgument."""
    if unknown := [number for number in message.group_by if number not in _GROUPS]:
        raise UsageQueryInvalid(f"There is nothing numbered {unknown[0]} to group usage by.")
    return checked_query(
        _moment(message.since) if message.HasField("since") else None,
        _moment(message.until) if message.HasField("until") else None,
        [_GROUPS[number] for number in message.group_by],
        agent_id=from_public("agent", message.agent_id) if message.agent_id else None,
        handle=message.handle,
        kind=message.kind,
        now=now,
    )


def _moment(stamp: Timestamp) -> datetime:
    try:
        return stamp.ToDatetime(UTC)
    except (ValueError, OverflowError):
        raise UsageQueryInvalid("A usage report is over times from the year 1 to 9999.") from None


def totals_message(totals: Totals) -> usage_pb.UsageTotals:
    """Sums."""
    return usage_pb.UsageTotals(**{name: getattr(totals, name) for name in Totals.__dataclass_fields__})


def row_messages(report: Report, groups: Iterable[Group]) -> list[usage_pb.UsageRow]:
    """The rows of a report by these groups."""
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
    """Raises BudgetInvalid."""
    return Budget(
        period_of(message.period),
        message.max_requests if message.HasField("max_requests") else None,
        message.max_tokens if message.HasField("max_tokens") else None,
        message.max_cost_nanos_usd if message.HasField("max_cost_nanos_usd") else None,
    )


def period_of(number: int) -> Period:
    """Raises BudgetInvalid."""
    period = _PERIODS.get(usage_pb.BudgetPeriod.ValueType(number))
    if period is None:
        raise BudgetInvalid("A budget is for one minute, hour, day or month.")
    return period


def state_message(state: BudgetState) -> usage_pb.BudgetState:
    """A budget and what is spent of it."""
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
