"""Environment variables and sandbox settings over gRPC."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any
from uuid import UUID

from loci.tool.v1 import sandbox_config_service_pb2 as wire
from loci.tool.v1 import sandbox_config_service_pb2_grpc as grpc
from services.common.context import current
from services.common.errors import FailedPrecondition
from services.common.page_requests import page_by_id
from services.common.purge import organization_to_purge
from services.tool_runner.core.job import SandboxUnavailable
from services.tool_runner.sandbox_configs import convert
from services.tool_runner.sandbox_configs.model import Scope, Variable
from services.tool_runner.sandbox_configs.service import SandboxConfigService
from services.tool_runner.tools.model import DEFAULT_SIZE


class SandboxConfigServicer(grpc.SandboxConfigServiceServicer):
    """loci.tool.v1.SandboxConfigService. `forget_tenant`: removes what is kept outside of the database."""

    def __init__(self, admin: SandboxConfigService, forget_tenant: Callable[[UUID], Awaitable[None]]) -> None:
        self._admin = admin
        self._forget_tenant = forget_tenant

    async def SetEnvironment(self, request: wire.SetEnvironmentRequest, context: Any) -> wire.SetEnvironmentResponse:
        caller = current()
        owner = convert.owner(request.owner, Scope.AGENT, Scope.TOOL)
        drafts = [convert.drafts.draft(message).values for message in request.variables]
        stored = await self._admin.set(caller.organization_id, caller.user_id, owner, drafts)
        return wire.SetEnvironmentResponse(variables=await self._messages(stored))

    async def BatchGetEnvironments(
        self, request: wire.BatchGetEnvironmentsRequest, context: Any
    ) -> wire.BatchGetEnvironmentsResponse:
        owners = convert.owners(request.owners)
        variables = await self._admin.batch(current().organization_id, owners)
        return wire.BatchGetEnvironmentsResponse(variables=await self._messages(variables))

    async def PurgeEnvironment(
        self, request: wire.PurgeEnvironmentRequest, context: Any
    ) -> wire.PurgeEnvironmentResponse:
        owner = convert.owner(request.owner, Scope.AGENT)
        erased = await self._admin.purge(current().organization_id, owner)
        return wire.PurgeEnvironmentResponse(erased=erased)

    async def CreateSandboxConfig(
        self, request: wire.CreateSandboxConfigRequest, context: Any
    ) -> wire.CreateSandboxConfigResponse:
        caller = current()
        created = await self._admin.create_config(
            caller.organization_id, caller.user_id, request.type, request.config_json
        )
        return wire.CreateSandboxConfigResponse(sandbox_config=convert.config_message(created))

    async def EnsureSandboxConfig(
        self, request: wire.EnsureSandboxConfigRequest, context: Any
    ) -> wire.EnsureSandboxConfigResponse:
        caller = current()
        config = await self._admin.ensure_config(caller.organization_id, caller.user_id, request.type)
        return wire.EnsureSandboxConfigResponse(sandbox_config=convert.config_message(config))

    async def ListSandboxConfigs(
        self, request: wire.ListSandboxConfigsRequest, context: Any
    ) -> wire.ListSandboxConfigsResponse:
        page = page_by_id(request.page, "sandbox", DEFAULT_SIZE, ascending=True)
        listed = await self._admin.configs(current().organization_id, request.type, page)
        return wire.ListSandboxConfigsResponse(
            sandbox_configs=map(convert.config_message, listed.items), next_page_token=listed.next_token
        )

    async def UpdateSandboxConfig(
        self, request: wire.UpdateSandboxConfigRequest, context: Any
    ) -> wire.UpdateSandboxConfigResponse:
        caller, config_id = current(), convert.config_id(request.id)
        changed = await self._admin.update_config(
            caller.organization_id, caller.user_id, config_id, request.config_json
        )
        return wire.UpdateSandboxConfigResponse(sandbox_config=convert.config_message(changed))

    async def InstallSandboxPackages(
        self, request: wire.InstallSandboxPackagesRequest, context: Any
    ) -> wire.InstallSandboxPackagesResponse:
        config_id = convert.config_id(request.id)
        try:
            config = await self._admin.install_packages(current().organization_id, config_id)
        except SandboxUnavailable as error:
            raise FailedPrecondition(str(error), reason="SANDBOX_UNAVAILABLE") from None
        return wire.InstallSandboxPackagesResponse(sandbox_config=convert.config_message(config))

    async def DeleteSandboxConfig(
        self, request: wire.DeleteSandboxConfigRequest, context: Any
    ) -> wire.DeleteSandboxConfigResponse:
        await self._admin.delete_config(current().organization_id, convert.config_id(request.id))
        return wire.DeleteSandboxConfigResponse()

    async def CreateVariable(self, request: wire.CreateVariableRequest, context: Any) -> wire.CreateVariableResponse:
        caller, config_id = current(), convert.config_id(request.sandbox_config_id)
        created = await self._admin.create_variable(
            caller.organization_id, caller.user_id, config_id, convert.drafts.draft(request.variable).values
        )
        return wire.CreateVariableResponse(variable=(await self._messages([created]))[0])

    async def ListVariables(self, request: wire.ListVariablesRequest, context: Any) -> wire.ListVariablesResponse:
        config_id = convert.config_id(request.sandbox_config_id)
        page = page_by_id(request.page, "sandbox-env", DEFAULT_SIZE, ascending=True)
        listed = await self._admin.variables(current().organization_id, config_id, page)
        return wire.ListVariablesResponse(
            variables=await self._messages(listed.items), next_page_token=listed.next_token
        )

    async def UpdateVariable(self, request: wire.UpdateVariableRequest, context: Any) -> wire.UpdateVariableResponse:
        caller, variable_id = current(), convert.variable_id(request.id)
        draft = convert.drafts.draft(request.variable, request.update_mask.paths)
        changed = await self._admin.update_variable(caller.organization_id, caller.user_id, variable_id, draft)
        return wire.UpdateVariableResponse(variable=(await self._messages([changed]))[0])

    async def DeleteVariable(self, request: wire.DeleteVariableRequest, context: Any) -> wire.DeleteVariableResponse:
        await self._admin.delete_variable(current().organization_id, convert.variable_id(request.id))
        return wire.DeleteVariableResponse()

    async def PurgeOrganization(
        self, request: wire.PurgeOrganizationRequest, context: Any
    ) -> wire.PurgeOrganizationResponse:
        organization_id = organization_to_purge()
        await self._forget_tenant(organization_id)
        return wire.PurgeOrganizationResponse(done=await self._admin.purge_organization(organization_id))

    async def _messages(self, variables: Sequence[Variable]) -> list[wire.Variable]:
        values = await self._admin.shown_values(current().organization_id, variables)
        # One that went meanwhile has no value.
        return [convert.variable_message(variable, values.get(variable.id, "")) for variable in variables]
