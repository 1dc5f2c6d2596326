"""Archival memory of an agent, and the search in that of the tenant."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC
from typing import Annotated
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from fastapi import APIRouter, Query
from starlette.responses import Response

from gateway.openapi.answers import returns
from gateway.openapi.schemas import MESSAGE, array
from gateway.resources.agents.routes import fetch
from gateway.resources.archives import requests as bodies
from gateway.resources.archives.requests import MODES
from gateway.resources.archives.responses import (
    EMBEDDING_SECONDS,
    passage_answer,
    passage_answers,
    passage_rests,
    without_vectors,
)
from gateway.resources.archives.schemas import FOUND_PASSAGES, PASSAGE, PASSAGE_HIT
from gateway.rest.convert import Rest
from gateway.rest.paging import FIRST_PAGE, descending, page_request, page_size, paged, set_order
from gateway.rest.params import AgentId, Moment, Names, PassageId
from gateway.rest.responses import json_response
from gateway.rest.services import Loci, Services
from loci.common.v1.page_pb2 import PageRequest
from loci.memory.v1 import passage_pb2, passage_service_pb2
from services.common.core.neighbours import MOST_CONTEXT
from services.common.timestamps import timestamp

router = APIRouter()
_OF_AGENT = "/agents/{agent_id}/archival-memory"


@router.post(_OF_AGENT, tags=["agents"])
@returns(array(PASSAGE))
async def create_passage(agent_id: AgentId, body: bodies.CreatePassage, loci: Loci) -> Response:
    """Stores one passage, as it is, and returns it in a list."""
    agent = await fetch(loci, agent_id)
    created = await loci.peers.call(
        loci.peers.passages.CreatePassages,
        passage_service_pb2.CreatePassagesRequest(
            agent_id=agent_id, passages=[bodies.passage_draft(body)], embedding=agent.embedding, agent_name=agent.name
        ),
        timeout=EMBEDDING_SECONDS,
    )
    return await passage_answers(loci, created.passages)


@router.get(_OF_AGENT, tags=["agents"])
@returns(array(PASSAGE))
@paged(100, names="after before limit", zero="all", unknown_cursor="empty")
async def list_passages(
    agent_id: AgentId,
    loci: Loci,
    page: PageRequest = FIRST_PAGE,
    search: str | None = None,
    ascending: bool | None = True,
) -> Response:
    """A page of the agent's passages, oldest first; `after` means later in time in either order.

    An agent that is not there has none.
    """
    set_order(page, ascending=ascending is not False)
    request = passage_service_pb2.ListPassagesRequest(agent_id=agent_id, page=_in_time(page), search=search)
    response = await loci.peers.call(loci.peers.passages.ListPassages, request)
    return await passage_answers(loci, response.passages)


@router.get(f"{_OF_AGENT}/search", tags=["agents"])
@returns(FOUND_PASSAGES)
async def search_passages(
    agent_id: AgentId,
    loci: Loci,
    query: str,
    tags: Names = None,
    tag_match_mode: bodies.TagMode = "any",
    top_k: Annotated[int | None, Query(ge=1)] = None,
    start_datetime: Moment | None = None,
    end_datetime: Moment | None = None,
    search_mode: bodies.Mode | None = None,
    mode: bodies.Mode | None = None,
    context: Annotated[int, Query(ge=0, le=MOST_CONTEXT)] = 0,
    as_of: Moment | None = None,
    history: bool = False,
) -> Response:
    """The passages that answer best to `query`, by meaning and by words, or as `search_mode` says; none to a blank.

    Loci's own are `context`: so many neighbours of each, before and after it; `as_of`: what was true then; and
    `history`: also what is true no more.
    """
    if not query.strip():
        await fetch(loci, agent_id)
        return json_response({"results": [], "count": 0})
    request = passage_service_pb2.SearchPassagesRequest(
        agent_id=agent_id,
        query=query,
        tags=tags,
        match_all_tags=tag_match_mode == "all",
        top_k=0 if top_k is None else page_size(top_k, 0),
        start_time=timestamp(start_datetime),
        end_time=timestamp(end_datetime),
        mode=MODES[search_mode or mode],
        context=context,
        as_of=timestamp(as_of),
        history=history,
    )
    agent, response = await asyncio.gather(
        fetch(loci, agent_id),
        loci.peers.call(loci.peers.passages.SearchPassages, request, timeout=EMBEDDING_SECONDS),
    )
    results = [_found(hit, agent.timezone, with_context=context > 0) for hit in response.hits]
    content = {"results": results, "count": len(results)}
    return json_response(content, headers=without_vectors(response.without_vectors))


@router.patch(f"{_OF_AGENT}/{{memory_id}}", tags=["agents"])
@returns(PASSAGE)
async def update_passage(agent_id: AgentId, memory_id: PassageId, body: bodies.UpdatePassage, loci: Loci) -> Response:
    """Changes what the body names; a new text is embedded anew."""
    request = bodies.passage_change(memory_id, body, agent_id=agent_id)
    changed = await loci.peers.call(loci.peers.passages.UpdatePassage, request, timeout=EMBEDDING_SECONDS)
    return await passage_answer(loci, changed.passage)


@router.delete(f"{_OF_AGENT}/{{memory_id}}", tags=["agents"])
@returns(MESSAGE)
async def delete_passage(agent_id: AgentId, memory_id: PassageId, loci: Loci) -> Response:
    """Deletes one passage."""
    request = passage_service_pb2.DeletePassageRequest(agent_id=agent_id, passage_id=memory_id)
    await loci.peers.call(loci.peers.passages.DeletePassage, request)
    return json_response({"message": f"Memory id={memory_id} successfully deleted"})


@router.post("/passages/search", tags=["passages"])
@returns(array(PASSAGE_HIT))
async def search_everywhere(body: bodies.SearchPassages, loci: Loci) -> Response:
    """The passages of an agent, else of an archive, else of the tenant, each with its scores."""
    if body.agent_id is not None:
        await fetch(loci, body.agent_id)
    if not (body.query or "").strip():
        return await _newest(loci, body)
    request = passage_service_pb2.SearchPassagesRequest(
        **_place(body),
        query=body.query or "",
        top_k=page_size(body.limit, 5),
        tags=body.tags,
        match_all_tags=body.tag_match_mode == "all",
        start_time=timestamp(body.start_date),
        end_time=timestamp(body.end_date),
        mode=MODES[body.search_mode],
        context=body.context,
        as_of=timestamp(body.as_of),
        history=body.history,
    )
    response = await loci.peers.call(loci.peers.passages.SearchPassages, request, timeout=EMBEDDING_SECONDS)
    shown = {one.id: one for hit in response.hits for one in (hit.passage, *hit.before, *hit.after)}
    passages = dict(zip(shown, await passage_rests(loci, shown.values()), strict=True))
    hits = [_hit(hit, passages, with_context=body.context > 0) for hit in response.hits]
    return json_response(hits, headers=without_vectors(response.without_vectors))


def _in_time(page: PageRequest) -> PageRequest:
    """Returns the page whose cursors mean earlier and later in time, in whatever order it is."""
    if not descending(page):
        return page
    turned = PageRequest(page_size=page.page_size, page_token=page.page_token, order=page.order)
    if page.HasField("after"):
        turned.before = page.after
    if page.HasField("before"):
        turned.after = page.before
    return turned


async def _newest(loci: Services, body: bodies.SearchPassages) -> Response:
    """Returns the passages that pass the filters, newest first and without scores."""
    request = passage_service_pb2.ListPassagesRequest(
        **_place(body),
        page=page_request(5, limit=body.limit, order="desc"),
        tags=body.tags,
        match_all_tags=body.tag_match_mode == "all",
        start_time=timestamp(body.start_date),
        end_time=timestamp(body.end_date),
        as_of=timestamp(body.as_of),
        current=not body.history,
    )
    page = await loci.peers.call(loci.peers.passages.ListPassages, request)
    passages = await passage_rests(loci, page.passages)
    return json_response([{"passage": passage, "score": 0.0, "metadata": {}} for passage in passages])


def _place(body: bodies.SearchPassages) -> dict[str, str]:
    if body.agent_id is not None:
        return {"agent_id": body.agent_id}
    return {} if body.archive_id is None else {"archive_id": body.archive_id}


def _hit(hit: passage_pb2.PassageHit, passages: Mapping[str, Rest], *, with_context: bool) -> Rest:
    scores = {
        "vector_score": hit.vector_score if hit.HasField("vector_score") else None,
        "text_score": hit.text_score if hit.HasField("text_score") else None,
    }
    rest: Rest = {"passage": passages[hit.passage.id], "score": hit.score, "metadata": scores}
    if with_context:
        rest["context"] = {
            "before": [passages[one.id] for one in hit.before],
            "after": [passages[one.id] for one in hit.after],
        }
    return rest


def _found(hit: passage_pb2.PassageHit, timezone: str, *, with_context: bool) -> Rest:
    rest = _result(hit.passage, timezone)
    if with_context:
        rest["context"] = {
            "before": [_result(one, timezone) for one in hit.before],
            "after": [_result(one, timezone) for one in hit.after],
        }
    return rest


def _result(passage: passage_pb2.Passage, timezone: str) -> Rest:
    """Returns a hit of a search; its time is told in the agent's zone."""
    try:
        zone = ZoneInfo(timezone or "UTC")
    except (ZoneInfoNotFoundError, ValueError):
        zone = ZoneInfo("UTC")
    moment = passage.created_at.ToDatetime(tzinfo=UTC)
    with suppress(OverflowError):  # at the ends of the calendar
        moment = moment.astimezone(zone)
    created = moment.isoformat(timespec="seconds")
    return {"id": passage.id, "timestamp": created, "content": passage.text, "tags": list(passage.tags)}
