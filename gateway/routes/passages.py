"""Archival memory of an agent."""

import asyncio
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Annotated, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from fastapi import APIRouter, Query
from starlette.responses import Response

from gateway import convert
from gateway.agent_state import embedding_config
from gateway.bodies.tools import CreatePassage, timestamp
from gateway.body import JsonRoute
from gateway.convert import Rest
from gateway.params import AgentId, Cursor, Limit, Names, PassageId, page_size
from gateway.responses import json_response
from gateway.routes.agents import fetch
from gateway.services import Loci, Services
from loci.memory.v1 import passage_pb2, passage_service_pb2
from services.common.context import current
from services.common.ids import to_public, uuid7

# A provider embeds the text meanwhile.
_EMBEDDING_SECONDS = 120.0

router = APIRouter(prefix="/agents/{agent_id}/archival-memory", tags=["agents"], route_class=JsonRoute)


@router.post("")
async def create_passage(agent_id: AgentId, body: CreatePassage, loci: Loci) -> Response:
    """Stores one passage, as it is, and returns it in a list."""
    agent = await fetch(loci, agent_id)
    draft = passage_service_pb2.PassageDraft(
        id=to_public("passage", uuid7()),
        text=body.text,
        tags=body.tags,
        created_at=None if body.created_at is None else timestamp(body.created_at),
    )
    created = await loci.peers.call(
        loci.peers.passages.CreatePassages,
        passage_service_pb2.CreatePassagesRequest(agent_id=agent_id, passages=[draft], embedding=agent.embedding),
        timeout=_EMBEDDING_SECONDS,
    )
    return await _answer(loci, created.passages)


@router.get("")
async def list_passages(
    agent_id: AgentId,
    loci: Loci,
    after: Cursor = None,
    before: Cursor = None,
    limit: Limit = None,
    search: str | None = None,
    ascending: bool | None = True,
) -> Response:
    """A page of the agent's passages, oldest first."""
    request = passage_service_pb2.ListPassagesRequest(
        agent_id=agent_id,
        page_size=page_size(limit, 100),
        after=after,
        before=before,
        descending=ascending is False,
        search=search,
    )
    _, page = await asyncio.gather(fetch(loci, agent_id), loci.peers.call(loci.peers.passages.ListPassages, request))
    return await _answer(loci, page.passages)


@router.get("/search")
async def search_passages(
    agent_id: AgentId,
    loci: Loci,
    query: str,
    tags: Names = None,
    tag_match_mode: Literal["any", "all"] = "any",
    top_k: Annotated[int | None, Query(ge=1)] = None,
    start_datetime: datetime | None = None,
    end_datetime: datetime | None = None,
) -> Response:
    """The passages that answer best to `query`, by meaning and by words."""
    request = passage_service_pb2.SearchPassagesRequest(
        agent_id=agent_id,
        query=query,
        tags=tags,
        match_all_tags=tag_match_mode == "all",
        top_k=0 if top_k is None else page_size(top_k, 0),
        start_time=None if start_datetime is None else timestamp(start_datetime),
        end_time=None if end_datetime is None else timestamp(end_datetime),
    )
    agent, found = await asyncio.gather(
        fetch(loci, agent_id),
        loci.peers.call(loci.peers.passages.SearchPassages, request, timeout=_EMBEDDING_SECONDS),
    )
    results = [_result(hit.passage, agent.timezone) for hit in found.hits]
    return json_response({"results": results, "count": len(results)})


@router.delete("/{memory_id}")
async def delete_passage(agent_id: AgentId, memory_id: PassageId, loci: Loci) -> Response:
    """Deletes one passage."""
    request = passage_service_pb2.DeletePassageRequest(agent_id=agent_id, passage_id=memory_id)
    await loci.peers.call(loci.peers.passages.DeletePassage, request)
    return json_response(None)


async def _answer(loci: Services, passages: Iterable[passage_pb2.Passage]) -> Response:
    models, stored = await loci.catalogue.models(), list(passages)
    organization_id = to_public("org", current().organization_id)
    configs = {handle: embedding_config(handle, models) for handle in {one.embedding for one in stored}}
    return json_response([convert.passage(one, configs[one.embedding], organization_id) for one in stored])


def _result(passage: passage_pb2.Passage, timezone: str) -> Rest:
    """A hit of a search; its time is told in the agent's zone."""
    try:
        zone = ZoneInfo(timezone or "UTC")
    except (ZoneInfoNotFoundError, ValueError):
        zone = ZoneInfo("UTC")
    made = passage.created_at.ToDatetime(tzinfo=UTC).astimezone(zone).isoformat(timespec="seconds")
    return {"id": passage.id, "timestamp": made, "content": passage.text, "tags": list(passage.tags)}
