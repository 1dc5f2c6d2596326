"""Builds the gateway; tests build it the same way, with services of their own behind it."""

from dataclasses import dataclass

from fastapi import FastAPI
from starlette.middleware.cors import CORSMiddleware
from starlette.routing import Route
from starlette.types import ASGIApp

from gateway import VERSION
from gateway.access.auth import AUDIENCE, Authenticator, KeyAuthentication
from gateway.access.authorizer import Authorizer
from gateway.access.credentials import Credentials
from gateway.access.origin_check import OriginCheck
from gateway.access.rate_limits import RateLimits
from gateway.agent_files import routes as agent_transfer
from gateway.catalogue import Catalogue
from gateway.errors.problems import TRACE_HEADER
from gateway.git import routes as git_memory
from gateway.mcp_api.endpoint import McpEndpoint
from gateway.openai_api import embeddings as openai_embeddings
from gateway.openai_api import errors as openai_errors
from gateway.openai_api import routes as openai_compatible
from gateway.openai_api.responses import routes as openai_responses
from gateway.openapi import pages
from gateway.peers import Peers
from gateway.resources.access import access_tokens, api_keys, organizations, webhook_secret, whoami
from gateway.resources.agents import attachments as agent_parts
from gateway.resources.agents import files as agent_files
from gateway.resources.agents import overviews as agent_overviews
from gateway.resources.agents import routes as agents
from gateway.resources.agents import secrets as secrets_of_agents
from gateway.resources.approvals import routes as approvals
from gateway.resources.archives import embedding_changes, passages
from gateway.resources.archives import routes as archives
from gateway.resources.blocks import routes as blocks
from gateway.resources.blocks import versions as block_versions
from gateway.resources.checkpoints import routes as checkpoints
from gateway.resources.conversations import routes as conversations
from gateway.resources.conversations.responses import ConversationAgents
from gateway.resources.devices import routes as devices
from gateway.resources.executions import routes as executions
from gateway.resources.folders import routes as folders
from gateway.resources.groups import messages as group_messages
from gateway.resources.groups import routes as groups
from gateway.resources.identities import routes as identities
from gateway.resources.jobs import routes as jobs
from gateway.resources.mcp_servers import by_name as mcp_by_name
from gateway.resources.mcp_servers import consent as mcp_consent
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
from gateway.server import ade
from gateway.server.dispatcher import Dispatcher
from gateway.server.forwarded import ForwardedRequests
from gateway.server.middleware import RequestMiddleware
from gateway.settings import Settings
from gateway.sockets import routes as sockets
from gateway.vendors import routes as vendors
from services.common.context import Signer, Verifier

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
    secrets_of_agents,
    approvals,
    checkpoints,
    passages,
    archives,
    blocks,
    block_versions,
    git_memory,
    folders,
    tool_runs,
    mcp_consent,
    mcp_by_name,
    tools,
    mcp_servers,
    executions,
    sandbox_configs,
    models,
    openai_compatible,
    openai_embeddings,
    openai_responses,
    providers,
    embedding_changes,
    devices,
    learned_windows,
    message_search,
    vendors,
    waiting,
    stored_messages,
    model_calls,
    tags,
    identities,
    groups,
    group_messages,
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
    webhook_secret,
    whoami,
)
# Headers of answers that pages of other origins may read.
_EXPOSED = [
    TRACE_HEADER,
    "content-disposition",
    "etag",
    "location",
    "retry-after",
    "x-loci-without-vectors",
    "x-ratelimit-limit",
    "x-ratelimit-remaining",
    "x-ratelimit-reset",
    "x-search-mode",
    "x-should-retry",
    "x-upload-result",
]


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
    """Returns the gateway of `settings`.

    Call it inside the event loop that will run it. No verifier: tools are not let in.
    """
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
    for module in (openai_compatible, openai_embeddings, openai_responses):
        app.include_router(module.router, prefix=openai_errors.PREFIX, include_in_schema=False)
    mcp = McpEndpoint(app.state.services)
    app.router.routes.append(Route("/mcp", mcp, include_in_schema=False))
    pages.add(app, settings.base_path)
    ade.add(app, settings.ade_folder, settings.base_path)
    credentials = Credentials(peers, signer, settings.key_cache, AUDIENCE)
    authorizer = Authorizer(peers, app.state.services.conversations)
    keys = KeyAuthentication(credentials, authorizer, signer, required=settings.require_api_key)
    origin_check = OriginCheck(settings.known_hosts, settings.known_origins)
    served: ASGIApp = RequestMiddleware(
        Dispatcher(app),
        authenticator=Authenticator(settings.password, verifier, keys, origin_check),
        signer=signer,
        max_body_bytes=settings.max_body_bytes,
        max_upload_bytes=settings.max_upload_bytes,
        body_seconds=settings.body_seconds,
        limits=RateLimits(settings.rate_limit),
        key_cache=settings.key_cache,
        base_path=settings.base_path,
    )
    if settings.cors_origins:
        # Outermost: its errors can be read by pages, too, and a preflight shows no key.
        served = CORSMiddleware(
            served,
            allow_origins=settings.cors_origins,
            allow_methods=["*"],
            allow_headers=["*"],
            expose_headers=_EXPOSED,
            # A page of an allowed origin may be on the internet, and this server in the network at home.
            allow_private_network=True,
        )
    if settings.trusted_proxies:
        served = ForwardedRequests(served, settings.trusted_proxies)
    return Gateway(served, app, peers, mcp)
