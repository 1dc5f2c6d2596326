"""The port of templates."""

from collections.abc import Mapping
from typing import Any, Protocol
from uuid import UUID

from services.agent.resources.templates.model import Template, TemplateSettings
from services.common.core.paging import Page, PageOf


class TemplateStore(Protocol):
    """Templates of a tenant. Everything but `create` and `list` raises NotFound (TEMPLATE_NOT_FOUND)."""

    async def create(
        self,
        organization_id: UUID,
        user_id: UUID,
        template_id: UUID,
        settings: TemplateSettings,
        agent_file: Mapping[str, Any],
    ) -> Template:
        """Stores it with its first version. Raises AlreadyExists (TEMPLATE_NAME_TAKEN)."""
        ...

    async def version(
        self, organization_id: UUID, name: str, version: int | None
    ) -> tuple[Template, int, Mapping[str, Any]]:
        """Returns a version and its number; None: the newest saved one."""
        ...

    async def list(self, organization_id: UUID, name: str | None, page: Page) -> PageOf[Template]:
        """Returns one page, of any name where `name` is None. Raises NotFound (CURSOR_NOT_FOUND)."""
        ...

    async def update(
        self, organization_id: UUID, user_id: UUID, name: str, agent_file: Mapping[str, Any], *, save: bool
    ) -> Template:
        """Replaces what is worked on; with `save` that becomes a version before."""
        ...

    async def save(self, organization_id: UUID, user_id: UUID, name: str, message: str | None) -> Template:
        """Makes a version of what is worked on."""
        ...

    async def roll_back(self, organization_id: UUID, user_id: UUID, name: str, version: int | None) -> Template:
        """Works on a copy of a version from now on."""
        ...

    async def delete(self, organization_id: UUID, name: str) -> None:
        """With all versions."""
        ...
