"""Environment variables and sandbox settings over gRPC."""

from typing import Any

from loci.tool.v1 import environment_service_pb2 as wire
from loci.tool.v1 import environment_service_pb2_grpc as grpc
from services.common.context import current
from services.common.errors import FailedPrecondition
from services.common.purge import organization_to_purge
from services.tool_runner.core.job import SandboxUnavailable
from services.tool_runner.environments import convert
from services.tool_runner.environments.model import Scope, Variable
from services.tool_runner.environments.service import EnvironmentService


class EnvironmentServicer(grpc.EnvironmentServiceServicer):
    """loci.tool.v1.EnvironmentService."""

    def __init__(self, admin: EnvironmentService) -> None:
        self._admin = admin

    async def SetEnvironment(self, request: wire.SetEnvironmentRequest, context: Any) -> wire.SetEnvironmentResponse:
        caller = current()
        owner = convert.owner(request.owner, Scope.AGENT, Scope.TOOL)
        drafts = [convert.draft(message) for message in request.variables]
        found = await self._admin.set(caller.organization_id, caller.user_id, owner, drafts)
        return wire.SetEnvironmentResponse(variables=map(self._message, found))

    async def BatchGetEnvironments(
        self, request: wire.BatchGetEnvironmentsRequest, context: Any
    ) -> wire.BatchGetEnvironmentsResponse:
        owners = convert.owners(request.owners)
        found = await self._admin.batch(current().organization_id, owners)
        return wire.BatchGetEnvironmentsResponse(variables=map(self._message, found))

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
        found = await self._admin.ensure_config(caller.organization_id, caller.user_id, request.type)
        return wire.EnsureSandboxConfigResponse(sandbox_config=convert.config_message(found))

    async def ListSandboxConfigs(
        self, request: wire.ListSandboxConfigsRequest, context: Any
    ) -> wire.ListSandboxConfigsResponse:
        page = convert.page(request.page, "sandbox")
        found = await self._admin.configs(current().organization_id, request.type, page.after, page.size)
        return wire.ListSandboxConfigsResponse(sandbox_configs=map(convert.config_message, found))

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
            caller.organization_id, caller.user_id, config_id, convert.draft(request.variable)
        )
        return wire.CreateVariableResponse(variable=self._message(created))

    async def ListVariables(self, request: wire.ListVariablesRequest, context: Any) -> wire.ListVariablesResponse:
        config_id = convert.config_id(request.sandbox_config_id)
        page = convert.page(request.page, "sandbox-env")
        found = await self._admin.variables(current().organization_id, config_id, page.after, page.size)
        return wire.ListVariablesResponse(variables=map(self._message, found))

    async def UpdateVariable(self, request: wire.UpdateVariableRequest, context: Any) -> wire.UpdateVariableResponse:
        caller, variable_id = current(), convert.variable_id(request.id)
        change = convert.change(request.variable, request.update_mask.paths)
        changed = await self._admin.update_variable(caller.organization_id, caller.user_id, variable_id, change)
        return wire.UpdateVariableResponse(variable=self._message(changed))

    async def DeleteVariable(self, request: wire.DeleteVariableRequest, context: Any) -> wire.DeleteVariableResponse:
        await self._admin.delete_variable(current().organization_id, convert.variable_id(request.id))
        return wire.DeleteVariableResponse()

    async def PurgeOrganization(
        self, request: wire.PurgeOrganizationRequest, context: Any
    ) -> wire.PurgeOrganizationResponse:
        return wire.PurgeOrganizationResponse(done=await self._admin.purge_organization(organization_to_purge()))

    def _message(self, variable: Variable) -> wire.Variable:
        return convert.variable_message(variable, self._admin.mask(variable))
