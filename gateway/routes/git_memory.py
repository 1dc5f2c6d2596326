"""An agent's memory as a git repository, over git's smart HTTP protocol: clone, fetch and push."""

import asyncio

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from gateway.body import JsonRoute
from gateway.errors import InvalidRequest
from gateway.git.lines import RECEIVE, UPLOAD, BadRequest, answer_fetch, offer, read_fetch, read_push, report
from gateway.git.memory import Repository, apply, load
from gateway.git.packs import BadPack
from gateway.git.pushing import Refused, changes
from gateway.git.requests import address_of, unpacked
from gateway.routes.agents import fetch
from gateway.services import Loci, Services
from services.common.errors import NotFound
from services.common.ids import from_public

router = APIRouter(route_class=JsonRoute)

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
    try:
        if refs:
            repository = await load(loci, agent)
            return _answer(offer(service, repository.history.head), f"{service}-advertisement")
        encoding = request.headers.get("content-encoding", "").strip().lower()
        body = await asyncio.to_thread(unpacked, await request.body(), encoding)
        if address.what == UPLOAD:
            wanted = await asyncio.to_thread(read_fetch, body)
            history = (await load(loci, agent)).history
            return _answer(await asyncio.to_thread(answer_fetch, history, wanted), f"{UPLOAD}-result")
        return _answer(await _push(loci, await load(loci, agent), body), f"{RECEIVE}-result")
    except (BadRequest, BadPack) as error:
        raise InvalidRequest(str(error), "body") from None


async def _push(loci: Services, repository: Repository, body: bytes) -> bytes:
    """Takes a push as a whole, or not. Raises BadRequest, BadPack."""
    pushes = read_push(body)
    if not pushes:
        # Git asks whether it is let in before it sends what is large.
        return b""
    try:
        if len(pushes) > 1:
            raise Refused("one branch at a time")
        await apply(loci, repository, await asyncio.to_thread(changes, repository.history, pushes[0]))
        why = ""
    except Refused as refusal:
        why = str(refusal)
    return report([(push.ref, why) for push in pushes])


def _answer(content: bytes, kind: str) -> Response:
    return Response(content, media_type=f"application/x-{kind}", headers=_HEADERS)
