"""The operations of SandboxConfigService on variables and sandbox settings."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from services.common.core.drafts import Draft
from services.common.core.paging import Page, PageOf
from services.common.errors import AlreadyExists
from services.common.ids import uuid7
from services.tool_runner.errors import no_such_config, no_such_variable
from services.tool_runner.sandbox_configs.model import (
    MASK,
    Owner,
    SandboxConfig,
    StoredVariable,
    Variable,
    VariableSettings,
)
from services.tool_runner.sandbox_configs.packages import Packages
from services.tool_runner.sandbox_configs.ports import SandboxConfigStore
from services.tool_runner.sandbox_configs.rules import configs, variables
from services.tool_runner.sandbox_configs.vault import Vault


class SandboxConfigService:
    """Values come out only where the operator has them shown. Whatever breaks a rule raises Refused."""

    def __init__(
        self, store: SandboxConfigStore, vault: Vault, packages: Packages, *, shows_values: bool = False
    ) -> None:
        self._shows_values = shows_values
        self._store = store
        self._vault = vault
        self._packages = packages

    # Of agents and tools -------------------------------------------------------------------------------------------

    async def set(
        self, organization_id: UUID, user_id: UUID, owner: Owner, drafts: Sequence[VariableSettings]
    ) -> list[Variable]:
        """Makes these the owner's variables. Raises NotFound (TOOL_NOT_FOUND)."""
        variables.check_all(drafts)

        def rewrite(present: Mapping[str, UUID]) -> list[StoredVariable]:
            return [self._store_form(organization_id, draft, present.get(draft.key)) for draft in drafts]

        return await self._store.replace(organization_id, user_id, owner, rewrite)

    async def batch(self, organization_id: UUID, owners: Sequence[Owner]) -> list[Variable]:
        """Variables of many owners."""
        return await self._store.batch(organization_id, owners) if owners else []

    async def purge(self, organization_id: UUID, owner: Owner) -> int:
        """Erases an owner's variables; how many."""
        return await self._store.purge(organization_id, owner)

    async def purge_organization(self, organization_id: UUID) -> bool:
        """See `SandboxConfigStore.purge_organization`."""
        return await self._store.purge_organization(organization_id)

    # Of sandboxes --------------------------------------------------------------------------------------------------

    async def create_config(self, organization_id: UUID, user_id: UUID, kind: str, config: str) -> SandboxConfig:
        """Raises AlreadyExists (SANDBOX_CONFIG_EXISTS)."""
        kind, config = configs.check_type(kind), configs.check_config(config)
        created = await self._store.create_config(organization_id, user_id, uuid7(), kind, config)
        if created is None:
            sentence = f"there are settings of {kind} sandboxes already; change those"
            raise AlreadyExists(sentence, reason="SANDBOX_CONFIG_EXISTS")
        return created

    async def ensure_config(self, organization_id: UUID, user_id: UUID, kind: str) -> SandboxConfig:
        """Returns those of the kind, made where there are none."""
        kind = configs.check_type(kind)
        while True:
            if existing := await self._store.config_of(organization_id, kind):
                return existing
            if created := await self._store.create_config(organization_id, user_id, uuid7(), kind, "{}"):
                return created

    async def configs(self, organization_id: UUID, kind: str, page: Page) -> PageOf[SandboxConfig]:
        """Returns one page. Raises NotFound (CURSOR_NOT_FOUND)."""
        return await self._store.configs(organization_id, configs.check_type(kind) if kind else "", page)

    async def update_config(self, organization_id: UUID, user_id: UUID, config_id: UUID, config: str) -> SandboxConfig:
        """Raises NotFound (SANDBOX_CONFIG_NOT_FOUND)."""
        config = configs.check_config(config)
        if changed := await self._store.update_config(organization_id, user_id, config_id, config):
            return changed
        raise no_such_config(config_id)

    async def install_packages(self, organization_id: UUID, config_id: UUID) -> SandboxConfig:
        """Returns those of the settings, now. Raises NotFound (SANDBOX_CONFIG_NOT_FOUND), and as `Packages.install`."""
        config = await self._store.config(organization_id, config_id)
        if config is None:
            raise no_such_config(config_id)
        await self._packages.install(configs.effective(config.type, config.config))
        return config

    async def delete_config(self, organization_id: UUID, config_id: UUID) -> None:
        """Deletes it with its variables. Raises NotFound (SANDBOX_CONFIG_NOT_FOUND)."""
        if not await self._store.delete_config(organization_id, config_id):
            raise no_such_config(config_id)

    async def create_variable(
        self, organization_id: UUID, user_id: UUID, config_id: UUID, draft: VariableSettings
    ) -> Variable:
        """Raises NotFound (SANDBOX_CONFIG_NOT_FOUND), AlreadyExists (VARIABLE_EXISTS)."""
        variables.check(draft)
        written = self._store_form(organization_id, draft, None)
        return await self._store.create_variable(
            organization_id, user_id, config_id, written, most=variables.MOST_VARIABLES
        )

    async def variables(self, organization_id: UUID, config_id: UUID, page: Page) -> PageOf[Variable]:
        """Returns one page. Raises NotFound (SANDBOX_CONFIG_NOT_FOUND, CURSOR_NOT_FOUND)."""
        return await self._store.variables(organization_id, config_id, page)

    async def update_variable(
        self, organization_id: UUID, user_id: UUID, variable_id: UUID, draft: Draft[VariableSettings]
    ) -> Variable:
        """Raises NotFound (VARIABLE_NOT_FOUND), AlreadyExists (VARIABLE_EXISTS)."""
        changes: dict[str, Any] = {name: getattr(draft.values, name) for name in draft.names}
        if "key" in changes:
            variables.check_name(changes["key"])
        if changes.get("value") == MASK:
            del changes["value"]
        if "value" in changes:
            variables.check_value(changes.get("key", f"sandbox-env-{variable_id}"), changes["value"])
            changes["value"] = self._vault.seal(changes["value"], organization_id, variable_id)
        changed = await self._store.update_variable(organization_id, user_id, variable_id, **changes)
        if changed is None:
            raise no_such_variable(variable_id)
        return changed

    async def delete_variable(self, organization_id: UUID, variable_id: UUID) -> None:
        """Raises NotFound (VARIABLE_NOT_FOUND)."""
        if not await self._store.delete_variable(organization_id, variable_id):
            raise no_such_variable(variable_id)

    async def shown_values(self, organization_id: UUID, variables: Sequence[Variable]) -> Mapping[UUID, str]:
        """Returns what is shown of each value, by the variable's id."""
        if not self._shows_values:
            return {variable.id: self._vault.mask(variable) for variable in variables}
        values = await self._store.values(organization_id, [variable.id for variable in variables])
        return {value.id: self._vault.show(organization_id, value) for value in values}

    def _store_form(self, organization_id: UUID, draft: VariableSettings, present: UUID | None) -> StoredVariable:
        """Returns the draft sealed for the id it has or gets. Raises Refused where there is nothing to keep."""
        if draft.value == MASK:
            if present is None:
                raise variables.nothing_to_keep(draft.key)
            return StoredVariable(present, draft.key, None, draft.description)
        variable_id = present or uuid7()
        return StoredVariable(
            variable_id, draft.key, self._vault.seal(draft.value, organization_id, variable_id), draft.description
        )
