"""loci.llm.v1.UsageService."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from loci.llm.v1 import usage_service_pb2 as usage_pb
from loci.llm.v1 import usage_service_pb2_grpc as usage_grpc
from services.common.context import current
from services.common.errors import Unavailable
from services.common.ids import from_public
from services.llm_gateway.calling.ledger import Ledger
from services.llm_gateway.calling.reports import Group
from services.llm_gateway.convert.usage import (
    budget_of,
    period_of,
    report_query,
    row_messages,
    state_message,
    totals_message,
)
from services.llm_gateway.ports import StoreUnavailable, UsageReports
from services.llm_gateway.usage import UsageLog


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
