"""Usage of models and its cost; Loci's own."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query
from starlette.responses import Response

from gateway.errors.invalid import InvalidRequest
from gateway.openapi.answers import returns
from gateway.resources.usage import responses as usage
from gateway.resources.usage.schemas import USAGE_REPORT
from gateway.rest.params import AgentFilter, Moment, Names, split
from gateway.rest.responses import json_response
from gateway.rest.services import Loci
from loci.llm.v1 import usage_service_pb2 as usage_pb
from services.common.fields import enum_numbers
from services.common.timestamps import timestamp

router = APIRouter(prefix="/usage", tags=["usage"])

_GROUPS = enum_numbers(usage_pb.UsageGroup.DESCRIPTOR)


@router.get("")
@router.get("/", include_in_schema=False)
@returns(USAGE_REPORT)
async def report_usage(
    loci: Loci,
    start: Annotated[Moment | None, Query(description="Default: 30 days before `end`.")] = None,
    end: Annotated[Moment | None, Query(description="Exclusive. Default: now.")] = None,
    group_by: Annotated[Names, Query(description="Up to 3 of hour, day, model, provider, agent, kind.")] = None,
    agent_id: AgentFilter = None,
    model: str | None = None,
    kind: Literal["chat", "embedding"] | None = None,
) -> Response:
    """Sums over calls, by time or the costliest first; days and hours are UTC's. At most 10,000 rows."""
    groups = split(group_by)
    request = usage_pb.ReportUsageRequest(
        since=timestamp(start),
        until=timestamp(end),
        group_by=[_group(name) for name in groups],
        agent_id=agent_id or "",
        handle=model or "",
        kind=kind or "",
    )
    response = await loci.peers.call(loci.peers.usage.ReportUsage, request)
    return json_response(usage.report(response, groups))


def _group(name: str) -> usage_pb.UsageGroup.ValueType:
    if name not in _GROUPS:
        raise InvalidRequest(f"`group_by`: {name[:80]!r} is not one of {', '.join(_GROUPS)}", "query", "group_by")
    return usage_pb.UsageGroup.ValueType(_GROUPS[name])
