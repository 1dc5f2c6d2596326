"""An agent's memory as a git repository, over git's smart HTTP protocol: clone, fetch and push."""

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from gateway.errors.invalid import InvalidRequest
from gateway.git.requests import RECEIVE, UPLOAD, address_of
from gateway.resources.agents.routes import fetch
from gateway.rest.services import Loci
from services.common.errors import NotFound
from services.common.ids import from_public
from services.common.lazy_imports import import_lazily

router = APIRouter()

_ANY = ["GET", "POST", "PUT", "PATCH", "DELETE"]
_HEADERS = {"cache-control": "no-cache, max-age=0, must-revalidate"}


@router.api_route("/git/{path:path}", methods=_ANY, include_in_schema=False)
async def serve_git(path: str, request: Request, loci: Loci, service: str = "") -> Response:
    """Serves `git clone`, `git fetch` and `git push` of /v1/git/{agent_id}/state.git."""
    address = address_of(path)
    refs = address is not None and address.what == "info/refs"
    if address is None or request.method != ("GET" if refs else "POST"):
        raise NotFound("git clones /v1/git/{agent_id}/state.git; there is nothing else here", reason="NOT_FOUND")
    if refs and service not in (UPLOAD, RECEIVE):
        raise InvalidRequest(f"`service`: {UPLOAD} or {RECEIVE}; a git of 2009 or later asks for them", "service")
    from_public("agent", address.agent_id)
    agent = await fetch(loci, address.agent_id)
    serving = await import_lazily("gateway.git.serving")
    if refs:
        return _answer(await serving.advertise(loci, agent, service), f"{service}-advertisement")
    encoding = request.headers.get("content-encoding", "").strip().lower()
    content = await serving.respond(loci, agent, address.what, await request.body(), encoding)
    return _answer(content, f"{address.what}-result")


def _answer(content: bytes, kind: str) -> Response:
    return Response(content, media_type=f"application/x-{kind}", headers=_HEADERS)
