"""Routes that the reference's own applications use: mostly older or further names of routes that there are."""

from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from gateway.openapi.answers import returns
from gateway.openapi.schemas import FLAG, TEXT, record
from gateway.resources.agents import attachments as agent_parts
from gateway.resources.agents import overviews as agent_overviews
from gateway.resources.blocks import routes as blocks
from gateway.resources.messages.stored_requests import WarmCache
from gateway.resources.runs import routes as runs
from gateway.rest.responses import json_response

router = APIRouter()

_OTHER_NAMES: tuple[tuple[str, str, str, Any], ...] = (
    ("_internal_agents", "GET", "/count", agent_overviews.count_agents),
    ("_internal_agents", "PATCH", "/{agent_id}/core-memory/blocks/{block_label}", agent_parts.update_block),
    ("_internal_blocks", "GET", "", blocks.list_blocks),
    ("_internal_blocks", "POST", "", blocks.create_block),
    ("_internal_blocks", "DELETE", "/{block_id}", blocks.delete_block),
    ("_internal_blocks", "GET", "/{block_id}/agents", blocks.list_agents),
    ("_internal_runs", "GET", "", runs.list_runs),
)
for _resource, _method, _path, _handler in _OTHER_NAMES:
    router.add_api_route(f"/{_resource}{_path}", _handler, methods=[_method], tags=[_resource])


@router.post("/_internal_search/cache-warm", tags=["_internal_search"])
@returns(record("CacheWarmed", {"collection": TEXT, "status": TEXT, "warmed": FLAG}))
async def warm_cache(body: WarmCache | None = None) -> Response:
    """Says that searches are ready: their indexes are those of the database, and need no warming."""
    collection = body.collection if body else WarmCache().collection
    return json_response({"collection": collection, "status": "ready", "warmed": True})
