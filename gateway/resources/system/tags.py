"""The tags that agents and blocks have."""

import asyncio
from typing import Literal

from fastapi import APIRouter
from starlette.responses import Response

from gateway.errors.table import InvalidRequest
from gateway.openapi.answers import returns
from gateway.openapi.schemas import TEXT, array
from gateway.rest.json_body import JsonRoute
from gateway.rest.params import Limit, Order, page_size
from gateway.rest.responses import json_response
from gateway.rest.services import Loci
from loci.agent.v1 import agent_service_pb2
from loci.memory.v1 import block_service_pb2

router = APIRouter(tags=["tags"], route_class=JsonRoute)


@router.get("/tags")
@returns(array(TEXT))
async def list_tags(
    loci: Loci,
    before: str | None = None,
    after: str | None = None,
    limit: Limit = None,
    order: Order = "asc",
    order_by: Literal["name"] = "name",
    query_text: str | None = None,
    name: str | None = None,
) -> Response:
    """A page of tags of agents and blocks, each once, by the code points of its characters; `after` and `before` are
    tags. `name` is a part of the tag, as the older `query_text` is.
    """
    if name and query_text and name != query_text:
        raise InvalidRequest("`query_text` is the older name of `name`: give one of them", "query", "query_text")
    peers, most, falling, part = loci.peers, page_size(limit, 50), order == "desc", name or query_text or ""
    asked = agent_service_pb2.ListAgentTagsRequest(
        page_size=most, after=after, before=before, descending=falling, query_text=part
    )
    asked_of_blocks = block_service_pb2.ListBlockTagsRequest(
        page_size=most, after=after, before=before, descending=falling, query_text=part
    )
    of_agents, of_blocks = await asyncio.gather(
        peers.call(peers.agents.ListAgentTags, asked), peers.call(peers.blocks.ListBlockTags, asked_of_blocks)
    )
    # Each has the page as it would be without the other: the page of both is in what they have together.
    tags, at_end = sorted({*of_agents.tags, *of_blocks.tags}, reverse=falling), before is not None and after is None
    return json_response(tags[-most:] if at_end else tags[:most])
