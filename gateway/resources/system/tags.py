"""The tags that agents and blocks have."""

import asyncio
from typing import Literal

from fastapi import APIRouter
from starlette.responses import Response

from gateway.errors.invalid import InvalidRequest
from gateway.openapi.answers import returns
from gateway.openapi.schemas import TEXT, array
from gateway.rest.paging import FIRST_PAGE, descending, ends_before, paged
from gateway.rest.responses import json_response
from gateway.rest.services import Loci
from loci.agent.v1 import agent_service_pb2
from loci.common.v1.page_pb2 import PageRequest
from loci.memory.v1 import block_service_pb2

router = APIRouter(tags=["tags"])


@router.get("/tags")
@returns(array(TEXT))
@paged(50, "asc", cursor=str | None)
async def list_tags(
    loci: Loci,
    page: PageRequest = FIRST_PAGE,
    order_by: Literal["name"] = "name",
    query_text: str | None = None,
    name: str | None = None,
) -> Response:
    """A page of tags of agents and blocks, each once, by the code points of its characters; `after` and `before` are
    tags. `name` is a part of the tag, as the older `query_text` is.
    """
    if name and query_text and name != query_text:
        raise InvalidRequest("`query_text` is the older name of `name`: give one of them", "query", "query_text")
    peers, part, most = loci.peers, name or query_text or "", page.page_size
    of_agents, of_blocks = await asyncio.gather(
        peers.call(peers.agents.ListAgentTags, agent_service_pb2.ListAgentTagsRequest(page=page, query_text=part)),
        peers.call(peers.blocks.ListBlockTags, block_service_pb2.ListBlockTagsRequest(page=page, query_text=part)),
    )
    # Each has the page as it would be without the other: the page of both is in what they have together.
    tags = sorted({*of_agents.tags, *of_blocks.tags}, reverse=descending(page))
    return json_response(tags[-most:] if ends_before(page) else tags[:most])
