"""Whether the gateway answers."""

from fastapi import APIRouter
from starlette.responses import Response

from gateway import VERSION
from gateway.body import JsonRoute
from gateway.responses import json_response

router = APIRouter(tags=["health"], route_class=JsonRoute)


@router.get("/health")
async def check_health() -> Response:
    """Version and status. Needs no password and asks no service."""
    return json_response({"version": VERSION, "status": "ok"})
