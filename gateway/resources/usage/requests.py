"""Setting budgets."""

from typing import Annotated

from pydantic import Field

from gateway.rest.body import Body
from loci.llm.v1 import usage_service_pb2 as usage_pb

# int64 in the proto, and far above any real one.
_Count = Annotated[int, Field(gt=0, lt=2**62)]
_Dollars = Annotated[float, Field(ge=1e-9, le=1e9)]


class BudgetLimits(Body):
    """Body of PUT /v1/budgets/{period}: at least one limit. It replaces those that were set."""

    usd: _Dollars | None = None
    tokens: _Count | None = None
    requests: _Count | None = None

    def request(self, period: usage_pb.BudgetPeriod.ValueType) -> usage_pb.SetBudgetRequest:
        """Returns the request."""
        cost = None if self.usd is None else round(self.usd * 1_000_000_000)
        budget = usage_pb.Budget(
            period=period, max_requests=self.requests, max_tokens=self.tokens, max_cost_nanos_usd=cost
        )
        return usage_pb.SetBudgetRequest(budget=budget)
