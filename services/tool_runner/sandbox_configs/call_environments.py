"""The environment of a call, read from the tenant's settings for each call, so that a change holds at the next."""

from uuid import UUID

from services.tool_runner.core.ports import CallEnvironment
from services.tool_runner.sandbox_configs.ports import SandboxConfigStore
from services.tool_runner.sandbox_configs.rules import configs
from services.tool_runner.sandbox_configs.vault import Vault


class TenantEnvironments:
    """`core.ports.Environments`. `kind`: whose sandbox settings hold, one of `configs.TYPES`."""

    def __init__(self, store: SandboxConfigStore, vault: Vault, kind: str = "local") -> None:
        self._store = store
        self._vault = vault
        self._kind = kind

    async def of_call(self, organization_id: UUID, tool_id: UUID, agent_id: UUID | None) -> CallEnvironment:
        settings = await self._store.of_call(organization_id, self._kind, tool_id, agent_id)
        effective = configs.effective(self._kind, settings.config)
        return CallEnvironment(
            variables=self._vault.open_all(organization_id, settings.variables),
            pip_requirements=effective.pip_requirements,
            npm_requirements=effective.npm_requirements,
            fingerprint=effective.fingerprint,
        )
