"""Tenants' budgets in Postgres, and what they have spent."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from uuid import UUID

import asyncpg

from services.llm_gateway.budgets.model import Budget, Period, Spending
from services.llm_gateway.usage.store import store_errors

_LIST = """
SELECT organization_id, period, max_requests, max_tokens, max_cost_nanos_usd
FROM llm_gateway.budgets WHERE organization_id = ANY($1::uuid[])
ORDER BY array_position(ARRAY['minute', 'hour', 'day', 'month'], period)
"""
# More is no bigint; of one tenant's figures nobody else's reading fails.
MOST = 2**62
# Hours are summed when they are written; of the minute there are few calls.
_SPENT = f"""
SELECT organization_id, name AS period, least(sum(requests), {MOST})::bigint AS requests,
    least(sum(tokens), {MOST})::bigint AS tokens, least(sum(cost_nanos_usd), {MOST})::bigint AS cost
FROM llm_gateway.usage_hours
JOIN unnest(ARRAY['hour', 'day', 'month'], $3::timestamptz[]) AS span (name, start) ON hour >= start
WHERE organization_id = ANY($1::uuid[]) AND hour >= $4
GROUP BY organization_id, name
UNION ALL
SELECT organization_id, 'minute', count(*), least(sum(prompt_tokens + completion_tokens), {MOST})::bigint,
    least(coalesce(sum(cost_nanos_usd), 0), {MOST})::bigint
FROM llm_gateway.usage WHERE organization_id = ANY($1::uuid[]) AND created_at >= $2
GROUP BY organization_id
"""
_SET = """
INSERT INTO llm_gateway.budgets (organization_id, period, max_requests, max_tokens, max_cost_nanos_usd)
VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (organization_id, period) DO UPDATE SET max_requests = excluded.max_requests,
    max_tokens = excluded.max_tokens, max_cost_nanos_usd = excluded.max_cost_nanos_usd, updated_at = now()
"""
_DELETE = "DELETE FROM llm_gateway.budgets WHERE organization_id = $1 AND period = $2 RETURNING 1"


class PostgresBudgets:
    """A BudgetStore."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool

    async def budgets(self, organization_ids: Collection[UUID]) -> Mapping[UUID, Sequence[Budget]]:
        """See BudgetStore.budgets."""
        with store_errors():
            rows = await self._pool.fetch(_LIST, list(organization_ids))
        budgets: dict[UUID, list[Budget]] = defaultdict(list)
        for organization_id, period, requests, tokens, cost in rows:
            budgets[organization_id].append(Budget(Period(period), requests, tokens, cost))
        return budgets

    async def spent(
        self, organization_ids: Collection[UUID], starts: Mapping[Period, datetime]
    ) -> Mapping[UUID, Mapping[Period, Spending]]:
        """See BudgetStore.spent."""
        spans = [starts[period] for period in (Period.HOUR, Period.DAY, Period.MONTH)]
        arguments = (list(organization_ids), starts[Period.MINUTE], spans, min(spans))
        with store_errors():
            rows = await self._pool.fetch(_SPENT, *arguments)
        spending: dict[UUID, dict[Period, Spending]] = defaultdict(dict)
        for row in rows:
            spending[row["organization_id"]][Period(row["period"])] = Spending(
                row["requests"], row["tokens"], row["cost"]
            )
        return spending

    async def set_budget(self, organization_id: UUID, budget: Budget) -> None:
        """See BudgetStore.set_budget."""
        limits = (budget.requests, budget.tokens, budget.cost)
        with store_errors():
            await self._pool.execute(_SET, organization_id, budget.period.value, *limits)

    async def delete_budget(self, organization_id: UUID, period: Period) -> bool:
        """See BudgetStore.delete_budget."""
        with store_errors():
            return await self._pool.fetchval(_DELETE, organization_id, period.value) is not None
