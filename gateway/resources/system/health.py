"""Whether the gateway answers, and everything behind it."""

from fastapi import APIRouter
from starlette.responses import Response

from gateway import API_VERSION, VERSION
from gateway.errors.problems import Problem
from gateway.openapi.answers import returns
from gateway.openapi.schemas import TEXT, choice, record
from gateway.rest.responses import json_response
from gateway.rest.services import Loci

router = APIRouter(tags=["health"])

_STATUS = {"version": TEXT, "status": choice("ok"), "loci_version": TEXT}
_OK = {"version": API_VERSION, "status": "ok", "loci_version": VERSION}


@router.get("/ready")
@returns(record("Ready", _STATUS))
async def check_ready(loci: Loci) -> Response:
    """Returns whether every service answers; 503 names those that do not. Needs no password."""
    silent = await loci.peers.silent()
    if silent:
        return Problem(503, {"detail": f"not ready: {', '.join(silent)}"}).response()
    return json_response(_OK)


@router.get("/health")
@returns(record("Health", _STATUS))
async def check_health() -> Response:
    """Returns the API's version, the status and our own version. Needs no password and asks no service."""
    return json_response(_OK)
