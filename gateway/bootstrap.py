"""Builds the gateway; tests build it the same way, with services of their own behind it."""

from dataclasses import dataclass

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp

from gateway import VERSION, openai_errors
from gateway.auth import Authenticator
from gateway.catalogue import Catalogue
from gateway.conversations import ConversationAgents
from gateway.edge import Edge
from gateway.errors import UNKNOWN_ERROR, Problem, invalid, problem_of
from gateway.openai_errors import speaks_openai
from gateway.peers import Peers
from gateway.routes import (
    agent_files,
    agent_parts,
    agents,
    archives,
    background,
    block_versions,
    blocks,
    budgets,
    checkpoints,
    conversations,
    embedding_changes,
    folders,
    health,
    learned_windows,
    message_search,
    messages,
    models,
    openai_compatible,
    passages,
    providers,
    runs,
    steps,
    tools,
    usage,
)
from gateway.services import Services
from gateway.settings import Settings
from services.common.context import Signer
from services.common.errors import LociError

# In the order in which they are asked whether a request is theirs: turns first.
_ROUTERS = (
    messages,
    conversations,
    background,
    health,
    agents,
    agent_parts,
    agent_files,
    checkpoints,
    passages,
    archives,
    blocks,
    block_versions,
    folders,
    tools,
    models,
    openai_compatible,
    providers,
    embedding_changes,
    learned_windows,
    message_search,
    runs,
    steps,
    usage,
    budgets,
)
_NOT_JSON = "the body is not JSON: send it with the header `content-type: application/json`"


@dataclass(frozen=True)
class Gateway:
    """The ASGI application, the FastAPI one inside it, and what must be closed after them."""

    app: ASGIApp
    fastapi: FastAPI
    peers: Peers

    async def close(self) -> None:
        """Closes the channels."""
        await self.peers.close()


def build(settings: Settings, signer: Signer, *, peers: Peers | None = None) -> Gateway:
    """The gateway of `settings`. Call it inside the event loop that will run it."""
    peers = peers or Peers(settings)
    app = FastAPI(
        title="Loci",
        version=VERSION,
        description="Stateful agents. The REST API of the Letta V1 server.",
        redirect_slashes=False,
        # `edge.py` opens the one span of a request.
        telemetry={"tracing": False, "metrics": False, "logs": False, "operation_spans": False},
    )
    app.state.services = Services(settings, peers, Catalogue(peers), ConversationAgents(peers))
    for module in _ROUTERS:
        app.include_router(module.router, prefix="/v1")
    app.include_router(openai_compatible.router, prefix=openai_errors.PREFIX, include_in_schema=False)
    app.add_exception_handler(LociError, _failed)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _refused)
    app.add_exception_handler(Exception, _unexpected)
    edge = Edge(
        app,
        authenticator=Authenticator(settings.password),
        signer=signer,
        max_body_bytes=settings.max_body_bytes,
        max_upload_bytes=settings.max_upload_bytes,
    )
    return Gateway(edge, app, peers)


async def _failed(request: Request, error: Exception) -> Response:
    assert isinstance(error, LociError)
    return (openai_errors.failed if speaks_openai(request.scope) else problem_of)(error).response()


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
    return openai_errors.refused(problem, request.scope).response()


async def _unexpected(request: Request, error: Exception) -> Response:
    # Raised again after this answer, and logged by `edge.py`.
    return openai_errors.refused(Problem(500, {"detail": UNKNOWN_ERROR}), request.scope).response()
