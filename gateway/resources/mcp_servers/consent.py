"""OAuth of MCP servers in the user's browser: what is asked for, the way to the authorization server, and back.

Whoever is sent a foreign authorisation would give leave to a stranger's tenant without noticing. So a page of ours says
first who asks for what. Whoever agrees there gets a cookie, and only the browser that has it may bring leave back.
"""

import hashlib
import hmac
import html
from typing import Annotated
from urllib.parse import urlsplit

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from gateway.openapi.answers import returns
from gateway.openapi.schemas import TEXT
from gateway.resources.mcp_servers.responses import ASKING_SECONDS, origin_of
from gateway.rest.services import Loci, Services
from loci.tool.v1 import mcp_service_pb2
from services.common.errors import LociError, PermissionDenied

router = APIRouter(prefix="/tools/mcp/oauth", tags=["mcp servers"])

_COOKIE_PATH = "/v1/tools/mcp/oauth"
# As long as an attempt.
_SECONDS = 600
_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title></head>
<body><h1>{title}</h1>{content}</body></html>
"""
_ASK = """<p>An agent platform asks for the use of <b>{server}</b> ({address}) in your name, at <b>{authority}</b>.</p>
<p>It is Loci at {origin}. Its tenant {tenant} gets the leave; its user {user} began.</p>
<p>Go on only if you began this yourself.</p>
<form method="post"><button type="submit">Go on to {authority}</button></form>"""
# No `no-referrer` where a form is: its request would say nothing of where it comes from.
_HEADERS = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
}


@router.get("/begin")
@returns(TEXT, media_type="text/html", also=(400,))
async def ask_for_leave(request: Request, loci: Loci, state: str = "") -> Response:
    """Where a user is sent first: says who asks for what. No password is asked: the state names the attempt."""
    asked = await _asked(loci, state)
    if isinstance(asked, Response):
        return asked
    values = {
        "server": asked.server_name,
        "address": asked.server_url,
        "authority": urlsplit(asked.url).netloc,
        "origin": origin_of(request, loci),
        "tenant": asked.organization_id,
        "user": asked.user_id,
    }
    escaped = {name: html.escape(value[:500]) for name, value in values.items()}
    return _page("Authorise an MCP server?", _ASK.format(**escaped), 200)


@router.post("/begin")
@returns(TEXT, media_type="text/html", status=303, also=(400,))
async def agree_to_ask(request: Request, loci: Loci, state: str = "") -> Response:
    """Where a user who agrees goes on to the authorization server. The browser is known by a cookie from here on."""
    _check_same_origin(request, loci)
    asked = await _asked(loci, state)
    if isinstance(asked, Response):
        return asked
    public = urlsplit(origin_of(request, loci))
    response = RedirectResponse(asked.url, 303, headers=_HEADERS)
    response.set_cookie(
        _cookie_name(state),
        _cookie(state),
        max_age=_SECONDS,
        path=f"{public.path}{_COOKIE_PATH}",
        secure=public.scheme == "https",
        httponly=True,
        samesite="lax",
    )
    return response


@router.get("/callback")
@returns(TEXT, media_type="text/html", also=(400,))
async def finish_authorization(
    request: Request,
    loci: Loci,
    state: str = "",
    code: str = "",
    error: str = "",
    error_description: str = "",
    iss: Annotated[str, Query(description="RFC 9207")] = "",
) -> Response:
    """Where an authorization server sends the user's browser. No password is asked: the state names the attempt, and a
    cookie the browser that began it.
    """
    if not hmac.compare_digest(request.cookies.get(_cookie_name(state), "").encode(), _cookie(state).encode()):
        return _refusal("this authorisation was not begun in this browser; open the address that Loci gave you in it")
    refused = f"{error}: {error_description}" if error_description else error
    rpc_request = mcp_service_pb2.FinishMcpAuthorizationRequest(state=state, code=code, error=refused, issuer=iss)
    try:
        await loci.peers.call(loci.peers.mcp_servers.FinishMcpAuthorization, rpc_request, timeout=ASKING_SECONDS)
    except LociError as failure:
        if not failure.reason.startswith("MCP_"):
            raise
        return _refusal(failure.message)
    return _page("Authorised", "<p>Loci may use the MCP server now. You can close this window.</p>", 200)


async def _asked(loci: Services, state: str) -> mcp_service_pb2.GetMcpAuthorizationResponse | Response:
    rpc_request = mcp_service_pb2.GetMcpAuthorizationRequest(state=state)
    try:
        asked: mcp_service_pb2.GetMcpAuthorizationResponse = await loci.peers.call(
            loci.peers.mcp_servers.GetMcpAuthorization, rpc_request
        )
    except LociError as failure:
        if failure.reason != "MCP_OAUTH_STATE_INVALID":
            raise
        return _refusal(failure.message)
    # Whoever answers for an MCP server chose it.
    if urlsplit(asked.url).scheme not in ("http", "https"):
        return _refusal("the authorization server has no address on the web")
    return asked


def _check_same_origin(request: Request, loci: Services) -> None:
    """Raises PermissionDenied (ORIGIN_NOT_ALLOWED) where a page of somebody else agrees for the user."""
    ours = urlsplit(origin_of(request, loci))
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    if site not in (None, "same-origin") or origin not in (None, f"{ours.scheme}://{ours.netloc}"):
        raise PermissionDenied("only a person at this page can agree", reason="ORIGIN_NOT_ALLOWED")


def _cookie_name(state: str) -> str:
    return f"loci-mcp-{_digest('name', state)[:16]}"


def _cookie(state: str) -> str:
    return _digest("value", state)


def _digest(purpose: str, state: str) -> str:
    return hashlib.sha256(f"{purpose} {state}".encode()).hexdigest()


def _refusal(sentence: str) -> Response:
    return _page("Not authorised", f"<p>{html.escape(sentence)}. You can close this window.</p>", 400)


def _page(title: str, content: str, status: int) -> Response:
    return HTMLResponse(_PAGE.format(title=title, content=content), status_code=status, headers=_HEADERS)
