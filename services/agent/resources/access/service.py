"""Tenants and users: who may do what to them, and the end of a tenant."""

from collections.abc import Mapping
from contextlib import suppress
from uuid import UUID

from services.agent.resources.access.model import Organization, OrganizationSettings, User, UserSettings, check_name
from services.agent.resources.access.ports import TenantEraser, TenantPeers, TenantStore
from services.agent.resources.agents.model.names import random_name
from services.agent.resources.agents.ports import AgentStore
from services.agent.resources.outbox.ports import OutboxEntry
from services.agent.resources.outbox.service import Handler
from services.common.context import CallContext
from services.common.core.paging import Page, PageOf
from services.common.errors import FailedPrecondition, NotFound, PermissionDenied
from services.common.purge import DEFAULT_ORGANIZATION, check_not_default

# The tenant and the user of who needs no key. Its admins are the operator.
DEFAULT = DEFAULT_ORGANIZATION
_AGENTS_AT_ONCE = 50


def needs(caller: CallContext, *roles: str) -> None:
    """Raises PermissionDenied (ROLE_NOT_PERMITTED)."""
    if caller.role not in roles:
        raise _not_permitted(f"this takes the role {' or '.join(roles)}; ask an admin for a key that has it")


def is_operator(caller: CallContext) -> bool:
    """Returns whether the caller may see and change all tenants."""
    return caller.role == "admin" and caller.organization_id == DEFAULT


class Tenants:
    """Tenants and users, for whoever may. Raises PermissionDenied (ROLE_NOT_PERMITTED) and what the store raises."""

    def __init__(self, tenants: TenantStore) -> None:
        self._tenants = tenants

    async def create_organization(self, caller: CallContext, settings: OrganizationSettings) -> Organization:
        """Raises Refused (ORGANIZATION_INVALID)."""
        _operates(caller)
        name = check_name(settings.name or random_name(), "ORGANIZATION_INVALID")
        return await self._tenants.create_organization(name)

    async def organizations(self, caller: CallContext, page: Page) -> PageOf[Organization]:
        """Returns all for the operator, else the caller's own."""
        needs(caller, "admin")
        return await self._tenants.list_organizations(_within(caller), page)

    async def rename_organization(self, caller: CallContext, organization_id: UUID, name: str) -> Organization:
        """Raises Refused (ORGANIZATION_INVALID)."""
        needs(caller, "admin")
        if organization_id != caller.organization_id:
            _operates(caller)
        return await self._tenants.rename_organization(organization_id, check_name(name, "ORGANIZATION_INVALID"))

    async def delete_organization(self, caller: CallContext, organization_id: UUID) -> Organization:
        """Raises FailedPrecondition (ORGANIZATION_IS_DEFAULT)."""
        _operates(caller)
        return await self._tenants.delete_organization(check_not_default(organization_id), caller.user_id)

    async def create_user(self, caller: CallContext, settings: UserSettings) -> User:
        """Raises Refused (USER_INVALID)."""
        home = _home(caller, settings.organization_id)
        return await self._tenants.create_user(home, check_name(settings.name, "USER_INVALID"))

    async def users(self, caller: CallContext, page: Page, organization_id: UUID | None) -> PageOf[User]:
        """Returns users of one tenant; the operator, naming none, sees all."""
        home = _home(caller, organization_id)
        within = None if organization_id is None and is_operator(caller) else home
        return await self._tenants.list_users(within, page)

    async def rename_user(self, caller: CallContext, user_id: UUID, name: str) -> User:
        """Raises Refused (USER_INVALID)."""
        needs(caller, "admin")
        return await self._tenants.rename_user(_within(caller), user_id, check_name(name, "USER_INVALID"))

    async def delete_user(self, caller: CallContext, user_id: UUID) -> User:
        """Raises FailedPrecondition (USER_IS_DEFAULT)."""
        needs(caller, "admin")
        if user_id == DEFAULT:
            sentence = "the default user is whoever needs no key, and stays"
            raise FailedPrecondition(sentence, reason="USER_IS_DEFAULT")
        return await self._tenants.delete_user(_within(caller), user_id)


def handlers(eraser: TenantEraser, agents: AgentStore, peers: TenantPeers) -> Mapping[str, Handler]:
    """Returns what handles entries about a deleted tenant: each agent is deleted alone, then what has no agent, here
    and in the other services; with the last of its orders goes the tenant itself.
    """

    async def purge_organization(order: OutboxEntry) -> bool:
        check_not_default(order.organization_id)
        for agent_id in await eraser.agents(order.organization_id, _AGENTS_AT_ONCE):
            # Somebody else may have deleted it meanwhile.
            with suppress(NotFound):
                await agents.delete(order.organization_id, agent_id, UUID(order.payload["user_id"]))
        if not (await eraser.erase(order.organization_id) and await peers.purge()):
            return False
        if order.payload.get("last"):
            await eraser.forget(order.organization_id)
        return True

    return {purge_organization.__name__: purge_organization}


def _within(caller: CallContext) -> UUID | None:
    return None if is_operator(caller) else caller.organization_id


def _home(caller: CallContext, organization_id: UUID | None) -> UUID:
    needs(caller, "admin")
    if organization_id is None or organization_id == caller.organization_id:
        return caller.organization_id
    _operates(caller)
    return organization_id


def _operates(caller: CallContext) -> None:
    if not is_operator(caller):
        raise _not_permitted("this is for the operator: an admin of the default organization")


def _not_permitted(sentence: str) -> PermissionDenied:
    return PermissionDenied(sentence, reason="ROLE_NOT_PERMITTED")
