"""Budgets: the most that a tenant spends in a minute, an hour, a day or a month; Loci's own."""

from typing import Literal

from fastapi import APIRouter
from starlette.responses import Response

from gateway.openapi.answers import returns
from gateway.openapi.schemas import NULL, array
from gateway.resources.usage import responses as usage
from gateway.resources.usage.requests import BudgetLimits
from gateway.resources.usage.schemas import BUDGET
from gateway.rest.responses import json_response
from gateway.rest.services import Loci
from loci.llm.v1 import usage_service_pb2 as usage_pb
from services.common.fields import enum_numbers

router = APIRouter(prefix="/budgets", tags=["usage"])

Period = Literal["minute", "hour", "day", "month"]
_PERIODS = enum_numbers(usage_pb.BudgetPeriod.DESCRIPTOR)


@router.get("")
@router.get("/", include_in_schema=False)
@returns(array(BUDGET))
async def list_budgets(loci: Loci) -> Response:
    """Returns the budgets that hold, the operator's first, with the spending and the next period (UTC) of each."""
    response = await loci.peers.call(loci.peers.usage.ListBudgets, usage_pb.ListBudgetsRequest())
    return json_response([usage.budget_state(state) for state in response.budgets])


@router.get("/{period}")
@returns(array(BUDGET))
async def retrieve_budgets(period: Period, loci: Loci) -> Response:
    """Returns the budgets of one period: the operator's, the tenant's, or both."""
    response = await loci.peers.call(loci.peers.usage.ListBudgets, usage_pb.ListBudgetsRequest())
    number = _number(period)
    return json_response([usage.budget_state(state) for state in response.budgets if state.budget.period == number])


@router.put("/{period}")
@returns(BUDGET)
async def set_budget(period: Period, body: BudgetLimits, loci: Loci) -> Response:
    """Sets or replaces the tenant's budget of a period. It holds beside the operator's."""
    response = await loci.peers.call(loci.peers.usage.SetBudget, body.request(_number(period)))
    return json_response(usage.budget_state(response.budget))


@router.delete("/{period}")
@returns(NULL)
async def delete_budget(period: Period, loci: Loci) -> Response:
    """Removes the tenant's budget of a period."""
    await loci.peers.call(loci.peers.usage.DeleteBudget, usage_pb.DeleteBudgetRequest(period=_number(period)))
    return json_response(None)


def _number(period: str) -> usage_pb.BudgetPeriod.ValueType:
    return usage_pb.BudgetPeriod.ValueType(_PERIODS[period])
