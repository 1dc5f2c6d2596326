"""Whether the gateway answers, and everything behind it."""

from fastapi import APIRouter
from starlette.responses import Response

from gateway import VERSION
from gateway.errors.problems import Problem
from gateway.openapi.answers import returns
from gateway.openapi.schemas import TEXT, choice, record
from gateway.rest.responses import json_response
from gateway.rest.services import Loci

router = APIRouter(tags=["health"])


@router.get("/ready")
@returns(record("Ready", {"version": TEXT, "status": choice("ok")}))
async def check_ready(loci: Loci) -> Response:
    """Whether every service answers; 503 names those that do not. Needs no password."""
    silent = await loci.peers.silent()
    if silent:
        return Problem(503, {"detail": f"not ready: {', '.join(silent)}"}).response()
    return json_response({"version": VERSION, "status": "ok"})


@router.get("/health")
@returns(record("Health", {"version": TEXT, "status": choice("ok")}))
async def check_health() -> Response:
    """Version and status. Needs no password and asks no service."""
    return json_response({"version": VERSION, "status": "ok"})
