"""Builds the gateway; tests build it the same way, with services of their own behind it."""

from dataclasses import dataclass

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from gateway import VERSION
from gateway.access.auth import AUDIENCE, Authenticator, Keys
from gateway.access.authorizer import Judge
from gateway.access.credentials import Credentials
from gateway.access.origin_check import OpenDoor
from gateway.access.rate_limits import RateLimits
from gateway.agent_files import routes as agent_transfer
from gateway.catalogue import Catalogue
from gateway.errors import dialects as error_forms
from gateway.errors.table import TRACE_HEADER, UNKNOWN_ERROR, Problem, invalid
from gateway.git import routes as git_memory
from gateway.mcp_api.endpoint import McpEndpoint
from gateway.openai_api import errors as openai_errors
from gateway.openai_api import routes as openai_compatible
from gateway.openai_api.errors import speaks_openai
from gateway.openapi import pages
from gateway.peers import Peers
from gateway.resources.accounts import access_tokens, api_keys, organizations
from gateway.resources.agents import attachments as agent_parts
from gateway.resources.agents import files as agent_files
from gateway.resources.agents import overviews as agent_overviews
from gateway.resources.agents import routes as agents
from gateway.resources.archives import embedding_changes, passages
from gateway.resources.archives import routes as archives
from gateway.resources.blocks import routes as blocks
from gateway.resources.blocks import versions as block_versions
from gateway.resources.checkpoints import routes as checkpoints
from gateway.resources.conversations import routes as conversations
from gateway.resources.conversations.responses import ConversationAgents
from gateway.resources.environments import routes as environments
from gateway.resources.executions import routes as executions
from gateway.resources.folders import routes as folders
from gateway.resources.groups import routes as groups
from gateway.resources.identities import routes as identities
from gateway.resources.jobs import routes as jobs
from gateway.resources.mcp_servers import by_name as mcp_by_name
from gateway.resources.mcp_servers import routes as mcp_servers
from gateway.resources.messages import routes as messages
from gateway.resources.messages import search as message_search
from gateway.resources.messages import stored as stored_messages
from gateway.resources.model_calls import routes as model_calls
from gateway.resources.models import routes as models
from gateway.resources.models import windows as learned_windows
from gateway.resources.providers import routes as providers
from gateway.resources.runs import routes as runs
from gateway.resources.runs import steps
from gateway.resources.runs import streams as background
from gateway.resources.sandbox_configs import routes as sandbox_configs
from gateway.resources.schedules import routes as schedules
from gateway.resources.system import embeddings, health, internal, tags
from gateway.resources.system import not_yet as waiting
from gateway.resources.templates import deployments as internal_templates
from gateway.resources.templates import routes as templates
from gateway.resources.tools import routes as tools
from gateway.resources.tools import runs as tool_runs
from gateway.resources.usage import budgets
from gateway.resources.usage import routes as usage
from gateway.rest.services import Services
from gateway.server.dispatcher import Shortcut
from gateway.server.middleware import Edge
from gateway.settings import Settings
from gateway.sockets import routes as sockets
from gateway.vendors import routes as vendors
from services.common.context import Signer, Verifier
from services.common.errors import LociError

# In the order in which they are asked whether a request is theirs: turns first.
_ROUTERS = (
    messages,
    conversations,
    background,
    sockets,
    health,
    agent_transfer,
    agent_overviews,
    agents,
    agent_parts,
    schedules,
    agent_files,
    checkpoints,
    passages,
    archives,
    blocks,
    block_versions,
    git_memory,
    folders,
    tool_runs,
    mcp_by_name,
    tools,
    mcp_servers,
    executions,
    sandbox_configs,
    models,
    openai_compatible,
    providers,
    embedding_changes,
    environments,
    learned_windows,
    message_search,
    vendors,
    waiting,
    stored_messages,
    model_calls,
    tags,
    identities,
    groups,
    jobs,
    embeddings,
    internal,
    internal_templates,
    runs,
    steps,
    usage,
    budgets,
    templates,
    access_tokens,
    api_keys,
    organizations,
)
# Headers of answers that pages of other origins may read.
_EXPOSED = [
    TRACE_HEADER,
    "retry-after",
    "x-ratelimit-limit",
    "x-ratelimit-remaining",
    "x-ratelimit-reset",
    "x-should-retry",
]
_NOT_JSON = "the body is not JSON: send it with the header `content-type: application/json`"


@dataclass(frozen=True)
class Gateway:
    """The ASGI application, the FastAPI one inside it, and what must be closed after them."""

    app: ASGIApp
    fastapi: FastAPI
    peers: Peers
    mcp: McpEndpoint

    async def close(self) -> None:
        """Ends what MCP clients wait for, and closes the channels."""
        await self.mcp.close()
        await self.peers.close()


def build(
    settings: Settings, signer: Signer, *, verifier: Verifier | None = None, peers: Peers | None = None
) -> Gateway:
    """The gateway of `settings`. Call it inside the event loop that will run it. No verifier: tools are not let in."""
    peers = peers or Peers(settings)
    app = FastAPI(
        title="Loci",
        version=VERSION,
        description="Stateful agents. The REST API of the Letta V1 server.",
        redirect_slashes=False,
        openapi_url=None,  # openapi/pages.py has it
        # `server/middleware.py` opens the one span of a request.
        telemetry={"tracing": False, "metrics": False, "logs": False, "operation_spans": False},
    )
    app.state.services = Services(settings, peers, Catalogue(peers), ConversationAgents(peers))
    for module in _ROUTERS:
        app.include_router(module.router, prefix="/v1")
    app.include_router(openai_compatible.router, prefix=openai_errors.PREFIX, include_in_schema=False)
    mcp = McpEndpoint(app.state.services)
    app.router.routes.append(Route("/mcp", mcp, include_in_schema=False))
    pages.add(app)
    app.add_exception_handler(LociError, _failed)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _refused)
    app.add_exception_handler(Exception, _unexpected)
    credentials = Credentials(peers, signer, settings.key_cache, AUDIENCE)
    judge = Judge(peers, app.state.services.conversations)
    keys = Keys(credentials, judge, signer, required=settings.require_api_key)
    door = OpenDoor(settings.known_hosts, settings.cors_origins)
    turns = {messages.send, messages.send_streaming, conversations.send_to_conversation}
    edge: ASGIApp = Edge(
        Shortcut(app, (*messages.router.routes, *conversations.router.routes), turns, prefix="/v1"),
        authenticator=Authenticator(settings.password, verifier, keys, door),
        signer=signer,
        max_body_bytes=settings.max_body_bytes,
        max_upload_bytes=settings.max_upload_bytes,
        body_seconds=settings.body_seconds,
        limits=RateLimits(settings.rate_limit),
        key_cache=settings.key_cache,
    )
    if settings.cors_origins:
        # Outermost: errors of the edge can be read by pages, too, and a preflight shows no key.
        edge = CORSMiddleware(
            edge,
            allow_origins=settings.cors_origins,
            allow_methods=["*"],
            allow_headers=["*"],
            expose_headers=_EXPOSED,
        )
    return Gateway(edge, app, peers, mcp)


async def _failed(request: Request, error: Exception) -> Response:
    assert isinstance(error, LociError)
    return error_forms.failed(error, request.scope).response()


async def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    errors = error.errors()
    prefix = next((one["ctx"]["prefix"] for one in errors if one["type"] == "invalid_id"), None)
    if any(isinstance(one.get("input"), bytes) for one in errors):
        errors = [{"type": "not_json", "loc": ("body",), "msg": _NOT_JSON}]
    if speaks_openai(request.scope):
        return openai_errors.invalid(errors).response()
    return invalid(errors, prefix).response()


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    problem = Problem(error.status_code, {"detail": error.detail}, error.headers or {})
    return error_forms.refused(problem, request.scope).response()


async def _unexpected(request: Request, error: Exception) -> Response:
    # Raised again after this answer, and logged by `server/middleware.py`.
    return error_forms.refused(Problem(500, {"detail": UNKNOWN_ERROR}), request.scope).response()
