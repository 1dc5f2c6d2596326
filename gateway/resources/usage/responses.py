"""Usage of models as REST: money in US dollars as a number, times in ISO 8601."""

from collections.abc import Mapping, Sequence

from gateway.rest.convert import Rest, to_rest
from loci.llm.v1 import usage_service_pb2 as usage_pb
from services.common.fields import enum_names

_NANOS = 1_000_000_000
_PERIODS = enum_names(usage_pb.BudgetPeriod.DESCRIPTOR)


def totals(message: usage_pb.UsageTotals) -> Rest:
    """Sums over calls."""
    rest = to_rest(message, leave=frozenset({"cost_nanos_usd"}))
    return rest | {
        "total_tokens": message.prompt_tokens + message.completion_tokens,
        "cost_usd": message.cost_nanos_usd / _NANOS,
    }


def of_run(response: usage_pb.GetRunUsageResponse) -> Rest:
    """Returns Loci's additions to the usage of a run."""
    return {
        "cost_usd": response.totals.cost_nanos_usd / _NANOS,
        "requests": response.totals.requests,
        "unpriced_requests": response.totals.unpriced_requests,
        "estimated_requests": response.totals.estimated_requests,
        "by_model": [{"model": row.group[0], **totals(row.totals)} for row in response.by_model],
    }


def report(response: usage_pb.ReportUsageResponse, groups: Sequence[str]) -> Rest:
    """Returns a report by these groups."""
    return {
        "totals": totals(response.totals),
        "rows": [{"group": _group(groups, row.group), **totals(row.totals)} for row in response.rows],
        "truncated": response.truncated,
    }


def _group(names: Sequence[str], values: Sequence[str]) -> Mapping[str, str | None]:
    return {name: value or None for name, value in zip(names, values, strict=True)}


def budget_state(state: usage_pb.BudgetState) -> Rest:
    """Returns a budget and what is spent of it; null: no limit."""
    budget = state.budget
    return {
        "period": _PERIODS[budget.period],
        "operators": state.operators,
        "limits": {
            "usd": budget.max_cost_nanos_usd / _NANOS if budget.HasField("max_cost_nanos_usd") else None,
            "tokens": budget.max_tokens if budget.HasField("max_tokens") else None,
            "requests": budget.max_requests if budget.HasField("max_requests") else None,
        },
        "spent": {
            "usd": state.spent.cost_nanos_usd / _NANOS,
            "tokens": state.spent.tokens,
            "requests": state.spent.requests,
        },
        "resets_at": to_rest(state)["resets_at"],
    }
