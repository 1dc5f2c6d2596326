"""The dependencies of handlers."""

from dataclasses import dataclass, field
from typing import Annotated

from fastapi import Depends
from starlette.requests import Request

from gateway.access.auth import Caller
from gateway.catalogue import Catalogue
from gateway.peers import Peers
from gateway.resources.conversations.responses import ConversationAgents
from gateway.resources.executions.call_keys import CallKeys
from gateway.settings import Settings
from services.common.context import current
from services.common.ids import to_public


@dataclass(frozen=True)
class Services:
    """Made once, in `bootstrap.py`."""

    settings: Settings
    peers: Peers
    catalogue: Catalogue
    conversations: ConversationAgents
    call_keys: CallKeys = field(default_factory=CallKeys)


async def _services(request: Request) -> Services:
    services: Services = request.app.state.services
    return services


Loci = Annotated[Services, Depends(_services)]


def own_organization() -> str:
    """Returns the id of the organization that the request is made in."""
    return to_public("org", current().organization_id)


def caller_of(request: Request) -> Caller:
    """Returns the caller that the request is made for."""
    caller: Caller = request.scope["loci.caller"]
    return caller
