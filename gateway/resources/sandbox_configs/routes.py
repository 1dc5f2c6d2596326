"""Settings of sandboxes, by kind, and the environment variables that every call of the tenant gets."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path
from starlette.responses import Response

from gateway.errors.invalid import EXAMPLE_UUID
from gateway.openapi.answers import returns
from gateway.openapi.schemas import array
from gateway.resources.sandbox_configs import requests as bodies
from gateway.resources.sandbox_configs.responses import sandbox_variable
from gateway.resources.sandbox_configs.schemas import SANDBOX_CONFIG, SANDBOX_VARIABLE
from gateway.rest.body import Json, dump
from gateway.rest.convert import Rest, to_rest
from gateway.rest.paging import FIRST_PAGE, paged
from gateway.rest.params import checked_id
from gateway.rest.responses import json_response
from gateway.rest.services import Loci, Services
from loci.common.v1.page_pb2 import PageRequest
from loci.tool.v1 import sandbox_config_service_pb2 as wire
from services.common.context import current
from services.common.errors import AlreadyExists
from services.common.ids import to_public

router = APIRouter(prefix="/sandbox-config", tags=["sandbox-config"])

ConfigId = Annotated[str, Path(examples=[f"sandbox-{EXAMPLE_UUID}"]), checked_id("sandbox")]
VariableId = Annotated[str, Path(examples=[f"sandbox-env-{EXAMPLE_UUID}"]), checked_id("sandbox-env")]
_DEFAULT_PAGE = 1_000
_INSTALLING_SECONDS = 900.0
# What the reference shows of members that were not given.
_DEFAULTS: dict[str, Json] = {
    "local": {"sandbox_dir": None, "use_venv": False, "venv_name": "venv", "pip_requirements": []},
    "e2b": {"timeout": 300, "template": None, "pip_requirements": []},
    "modal": {"timeout": 300, "pip_requirements": [], "npm_requirements": [], "language": "python"},
}


@router.post("")
@returns(SANDBOX_CONFIG)
async def create_config(body: bodies.SandboxConfig, loci: Loci) -> Response:
    """Creates or replaces the settings of a kind of sandbox."""
    return await _store(loci, bodies.kind_of(body.config), body.config)


@router.post("/e2b/default")
@returns(SANDBOX_CONFIG)
async def ensure_e2b_config(loci: Loci) -> Response:
    """Returns the settings of E2B sandboxes; creates them where there are none."""
    return json_response(_rest(await _ensure(loci, "e2b")))


@router.post("/local/default")
@returns(SANDBOX_CONFIG)
async def ensure_local_config(loci: Loci) -> Response:
    """Returns the settings of local sandboxes; creates them where there are none."""
    return json_response(_rest(await _ensure(loci, "local")))


@router.post("/local")
@returns(SANDBOX_CONFIG)
async def create_local_config(body: dict[str, Any], loci: Loci) -> Response:
    """Creates or replaces the settings of local sandboxes."""
    return await _store(loci, "local", body)


@router.post("/local/recreate-venv")
@returns(SANDBOX_CONFIG)
async def recreate_local_packages(loci: Loci) -> Response:
    """Installs the packages of local sandboxes now, and not at the next call."""
    config = await _ensure(loci, "local")
    request = wire.InstallSandboxPackagesRequest(id=config.id)
    installed = await loci.peers.call(
        loci.peers.sandbox_configs.InstallSandboxPackages, request, timeout=_INSTALLING_SECONDS
    )
    return json_response(_rest(installed.sandbox_config))


@router.get("")
@returns(array(SANDBOX_CONFIG))
@paged(_DEFAULT_PAGE, names="limit after")
async def list_configs(
    loci: Loci,
    page: PageRequest = FIRST_PAGE,
    sandbox_type: Literal["local", "e2b", "modal"] | None = None,
) -> Response:
    """Returns a page of settings, oldest first."""
    request = wire.ListSandboxConfigsRequest(page=page, type=sandbox_type or "")
    response = await loci.peers.call(loci.peers.sandbox_configs.ListSandboxConfigs, request)
    return json_response([_rest(config) for config in response.sandbox_configs])


@router.patch("/{sandbox_config_id}")
@returns(SANDBOX_CONFIG)
async def update_config(sandbox_config_id: ConfigId, body: bodies.SandboxConfig, loci: Loci) -> Response:
    """Replaces settings."""
    return await _update(loci, sandbox_config_id, body.config)


@router.delete("/{sandbox_config_id}", status_code=204)
@returns(status=204)
async def delete_config(sandbox_config_id: ConfigId, loci: Loci) -> Response:
    """Deletes settings with their variables."""
    request = wire.DeleteSandboxConfigRequest(id=sandbox_config_id)
    await loci.peers.call(loci.peers.sandbox_configs.DeleteSandboxConfig, request)
    return Response(status_code=204)


@router.post("/{sandbox_config_id}/environment-variable")
@returns(SANDBOX_VARIABLE)
async def create_variable(sandbox_config_id: ConfigId, body: bodies.CreateVariable, loci: Loci) -> Response:
    """Adds a variable."""
    request = wire.CreateVariableRequest(sandbox_config_id=sandbox_config_id, variable=body.message())
    created = await loci.peers.call(loci.peers.sandbox_configs.CreateVariable, request)
    return json_response(sandbox_variable(created.variable))


@router.get("/{sandbox_config_id}/environment-variable")
@returns(array(SANDBOX_VARIABLE))
@paged(_DEFAULT_PAGE, names="limit after")
async def list_variables(sandbox_config_id: ConfigId, loci: Loci, page: PageRequest = FIRST_PAGE) -> Response:
    """Returns a page of variables, oldest first."""
    request = wire.ListVariablesRequest(sandbox_config_id=sandbox_config_id, page=page)
    response = await loci.peers.call(loci.peers.sandbox_configs.ListVariables, request)
    return json_response([sandbox_variable(variable) for variable in response.variables])


@router.patch("/environment-variable/{env_var_id}")
@returns(SANDBOX_VARIABLE)
async def update_variable(env_var_id: VariableId, body: bodies.UpdateVariable, loci: Loci) -> Response:
    """Changes what the body names; the mask as a value keeps the one that is there."""
    request = wire.UpdateVariableRequest(id=env_var_id, variable=body.message(), update_mask=body.mask())
    changed = await loci.peers.call(loci.peers.sandbox_configs.UpdateVariable, request)
    return json_response(sandbox_variable(changed.variable))


@router.delete("/environment-variable/{env_var_id}", status_code=204)
@returns(status=204)
async def delete_variable(env_var_id: VariableId, loci: Loci) -> Response:
    """Deletes a variable."""
    request = wire.DeleteVariableRequest(id=env_var_id)
    await loci.peers.call(loci.peers.sandbox_configs.DeleteVariable, request)
    return Response(status_code=204)


async def _ensure(loci: Services, kind: str) -> wire.SandboxConfig:
    request = wire.EnsureSandboxConfigRequest(type=kind)
    return (await loci.peers.call(loci.peers.sandbox_configs.EnsureSandboxConfig, request)).sandbox_config


async def _store(loci: Services, kind: str, config: Json) -> Response:
    request = wire.CreateSandboxConfigRequest(type=kind, config_json=dump(config))
    try:
        created = await loci.peers.call(loci.peers.sandbox_configs.CreateSandboxConfig, request)
    except AlreadyExists:
        return await _update(loci, (await _ensure(loci, kind)).id, config)
    return json_response(_rest(created.sandbox_config))


async def _update(loci: Services, sandbox_config_id: str, config: Json) -> Response:
    request = wire.UpdateSandboxConfigRequest(id=sandbox_config_id, config_json=dump(config))
    changed = await loci.peers.call(loci.peers.sandbox_configs.UpdateSandboxConfig, request)
    return json_response(_rest(changed.sandbox_config))


def _rest(config: wire.SandboxConfig) -> Rest:
    """Returns the reference's SandboxConfig."""
    rest = to_rest(config)
    return rest | {
        "config": _DEFAULTS.get(config.type, {}) | (rest["config"] or {}),
        "organization_id": to_public("org", current().organization_id),
    }
