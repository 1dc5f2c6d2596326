"""Usage and budgets."""

from gateway.openapi.schemas import FLAG, MOMENT, NUMBER, TEXT, WHOLE, array, by_name, maybe, names_of, record
from gateway.resources.runs.schemas import _TOTALS
from loci.llm.v1 import usage_service_pb2

USAGE_REPORT = record(
    "UsageReport",
    {
        "totals": record("UsageTotals", _TOTALS),
        "rows": array(record("UsageRow", {"group": by_name(maybe(TEXT)), **_TOTALS})),
        "truncated": FLAG,
    },
)
BUDGET = record(
    "BudgetState",
    {
        "period": names_of(usage_service_pb2.BudgetPeriod.DESCRIPTOR),
        "operators": FLAG,
        "limits": record("Limits", {"usd": maybe(NUMBER), "tokens": maybe(WHOLE), "requests": maybe(WHOLE)}),
        "spent": record("Spent", {"usd": NUMBER, "tokens": WHOLE, "requests": WHOLE}),
        "resets_at": maybe(MOMENT),
    },
)
