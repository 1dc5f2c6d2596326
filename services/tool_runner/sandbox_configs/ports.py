"""The database as sandbox configs and variables need it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from services.common.core.paging import Page, PageOf
from services.tool_runner.sandbox_configs.model import (
    Owner,
    Rewrite,
    SandboxConfig,
    SealedValue,
    StoredVariable,
    Variable,
)


@dataclass(frozen=True, slots=True)
class CallSettings:
    """The settings for a call: those of its kind of sandbox ("" for none), variables in the order of precedence."""

    config: str
    variables: Sequence[SealedValue]


class SandboxConfigStore(Protocol):
    """Every method takes the tenant first, and raises Unavailable where the database cannot be reached."""

    async def of_call(self, organization_id: UUID, kind: str, tool_id: UUID, agent_id: UUID | None) -> CallSettings:
        """Returns the settings for a call, in one statement."""
        ...

    async def replace(self, organization_id: UUID, user_id: UUID, owner: Owner, rewrite: Rewrite) -> list[Variable]:
        """Makes the owner's variables those of `rewrite`, in one transaction; all there are then, by key.

        Raises NotFound (TOOL_NOT_FOUND), and what `rewrite` raises.
        """
        ...

    async def batch(self, organization_id: UUID, owners: Sequence[Owner]) -> list[Variable]:
        """Returns the variables of all of them, by key."""
        ...

    async def values(self, organization_id: UUID, variable_ids: Sequence[UUID]) -> list[SealedValue]:
        """Returns the values of these variables, in any order."""
        ...

    async def purge(self, organization_id: UUID, owner: Owner) -> int:
        """Erases the owner's variables; how many there were."""
        ...

    async def purge_organization(self, organization_id: UUID) -> bool:
        """Erases rows of the tenant in all tables of the service; False while there are some left. May be repeated."""
        ...

    async def create_config(
        self, organization_id: UUID, user_id: UUID, config_id: UUID, kind: str, config: str
    ) -> SandboxConfig | None:
        """Returns None where the tenant has settings of this kind."""
        ...

    async def config_of(self, organization_id: UUID, kind: str) -> SandboxConfig | None:
        """Returns the settings of a kind."""
        ...

    async def config(self, organization_id: UUID, config_id: UUID) -> SandboxConfig | None:
        """Returns the settings with an id."""
        ...

    async def configs(self, organization_id: UUID, kind: str, page: Page) -> PageOf[SandboxConfig]:
        """Returns a page; of all kinds where `kind` is "". Raises NotFound (CURSOR_NOT_FOUND), Refused."""
        ...

    async def update_config(
        self, organization_id: UUID, user_id: UUID, config_id: UUID, config: str
    ) -> SandboxConfig | None:
        """Returns None where there is none."""
        ...

    async def delete_config(self, organization_id: UUID, config_id: UUID) -> bool:
        """Deletes it with its variables; False where there was none."""
        ...

    async def create_variable(
        self, organization_id: UUID, user_id: UUID, config_id: UUID, written: StoredVariable, most: int
    ) -> Variable:
        """Raises NotFound (SANDBOX_CONFIG_NOT_FOUND), AlreadyExists (VARIABLE_EXISTS), Refused for more than `most`."""
        ...

    async def variables(self, organization_id: UUID, config_id: UUID, page: Page) -> PageOf[Variable]:
        """Returns a page. Raises NotFound (SANDBOX_CONFIG_NOT_FOUND, CURSOR_NOT_FOUND), Refused."""
        ...

    async def update_variable(
        self,
        organization_id: UUID,
        user_id: UUID,
        variable_id: UUID,
        *,
        key: str | None = None,
        value: bytes | None = None,
        description: str | None = None,
    ) -> Variable | None:
        """Updates a variable of sandbox settings; what is None stays. Returns None where there is none.

        Raises AlreadyExists (VARIABLE_EXISTS).
        """
        ...

    async def delete_variable(self, organization_id: UUID, variable_id: UUID) -> bool:
        """Deletes a variable of sandbox settings; False where there was none."""
        ...
