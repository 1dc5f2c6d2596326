"""Secrets of agents and the settings of sandboxes over REST: asked for where they are shown, and never with a value."""

from __future__ import annotations

from typing import Any

import pytest

from loci.agent.v1 import agent_service_pb2
from loci.tool.v1 import sandbox_config_service_pb2 as wire
from loci.tool.v1 import tool_pb2, tool_service_pb2
from services.common.errors import AlreadyExists, InvalidArgument
from tests.integration.gateway import samples
from tests.integration.gateway.conftest import Edge
from tests.integration.gateway.samples import AGENT_ID
from tests.integration.gateway.scripted import Backend, new_id

CONFIG_ID, VARIABLE_ID = new_id("sandbox"), new_id("sandbox-env")
MASK = "********"


def variable(key: str = "KEY", **owner: str) -> wire.Variable:
    return wire.Variable(
        id=VARIABLE_ID if "sandbox_config_id" in owner else new_id("agent-env"),
        owner=wire.Owner(**owner),
        key=key,
        value=MASK,
    )


def config(kind: str = "local", text: str = "{}") -> wire.SandboxConfig:
    return wire.SandboxConfig(id=CONFIG_ID, type=kind, config_json=text)


def answer_agents(backend: Backend) -> None:
    backend.on("CreateAgent", lambda _: agent_service_pb2.CreateAgentResponse(agent=samples.agent()))
    backend.on("UpdateAgent", lambda _: agent_service_pb2.UpdateAgentResponse(agent=samples.agent()))
    backend.on(
        "BatchGetEnvironments",
        lambda request: wire.BatchGetEnvironmentsResponse(
            variables=[variable(agent_id=owner.agent_id) for owner in request.owners]
        ),
    )


async def test_an_agent_is_made_with_secrets_and_shows_masks(edge: Edge, backend: Backend) -> None:
    answer_agents(backend)
    state = await edge.sdk.agents.create(secrets={"KEY": "s3cret value"})
    [request] = backend.requests("CreateAgent")
    assert dict(request.agent.secrets) == {"KEY": "s3cret value"}
    assert state.secrets is not None
    [secret] = state.secrets
    assert (secret.key, secret.value, secret.agent_id, secret.value_enc) == ("KEY", MASK, AGENT_ID, MASK)
    assert (secret.created_at, secret.created_by_id) == (None, None)
    assert str(secret.id).startswith("agent-env-")
    assert state.tool_exec_environment_variables == state.secrets
    await edge.sdk.agents.create(tool_exec_environment_variables={"OLD": "x"})
    await edge.sdk.agents.create(secrets={"NEW": "y"}, tool_exec_environment_variables={"OLD": "x"})
    assert [dict(each.agent.secrets) for each in backend.requests("CreateAgent")[1:]] == [{"OLD": "x"}, {"NEW": "y"}]


async def test_an_update_names_secrets_only_where_they_are_sent(edge: Edge, backend: Backend) -> None:
    answer_agents(backend)
    await edge.sdk.agents.update(AGENT_ID, name="Eve")
    await edge.sdk.agents.update(AGENT_ID, secrets={"KEY": MASK, "OTHER": "x"})
    await edge.sdk.agents.update(AGENT_ID, secrets={})
    named = [(list(each.update_mask.paths), dict(each.agent.secrets)) for each in backend.requests("UpdateAgent")]
    assert named == [(["name"], {}), (["secrets"], {"KEY": MASK, "OTHER": "x"}), (["secrets"], {})]


async def test_a_page_asks_once_and_only_where_secrets_are_shown(edge: Edge, backend: Backend) -> None:
    answer_agents(backend)
    ids = [new_id("agent") for _ in range(50)]
    page = agent_service_pb2.ListAgentsResponse(agents=[samples.agent(id=each) for each in ids])
    backend.on("ListAgents", lambda _: page)
    for include, shown in ((["agent.secrets"], 1), (["agent.tags"], 0)):
        sdk = {"x-stainless-package-version": "1.12.1"}
        states = (await edge.http.get("/v1/agents", params={"include": include}, headers=sdk)).json()
        assert {len(state["secrets"]) for state in states} == {shown}
    state = await edge.sdk.agents.retrieve(AGENT_ID, include=["agent.blocks"])
    assert state.secrets == []
    [asked] = backend.requests("BatchGetEnvironments")
    assert [owner.agent_id for owner in asked.owners] == ids


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/agents", {"secrets": {"KEY": ["s3cret"]}}),
        ("/v1/agents", {"secrets": "s3cret", "name": 5}),
        ("/v1/agents", {"tool_exec_environment_variables": ["s3cret"]}),
        ("/v1/sandbox-config/CONFIG/environment-variable", {"value": "s3cret"}),
        ("/v1/sandbox-config/CONFIG/environment-variable", {"key": "A", "value": ["s3cret"]}),
    ],
)
async def test_what_is_refused_is_not_echoed(edge: Edge, path: str, body: dict[str, Any]) -> None:
    answer = await edge.http.post(path.replace("CONFIG", CONFIG_ID), json=body)
    assert answer.status_code == 422
    assert "s3cret" not in answer.text


async def test_a_refused_secret_is_a_422(edge: Edge, backend: Backend) -> None:
    def refuse(_: Any) -> Any:
        raise InvalidArgument("the environment variable PATH is set by Loci", reason="ENVIRONMENT_INVALID")

    backend.on("CreateAgent", refuse)
    answer = await edge.http.post("/v1/agents", json={"secrets": {"PATH": "s3cret"}})
    assert answer.status_code == 422
    assert "PATH is set by Loci" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ({}, "local"),
        ({"pip_requirements": [{"name": "six", "version": None}]}, "local"),
        ({"sandbox_dir": "~/x", "use_venv": True, "venv_name": "v", "pip_requirements": []}, "local"),
        ({"timeout": 60}, "e2b"),
        ({"template": "t", "pip_requirements": []}, "e2b"),
        ({"timeout": 60, "npm_requirements": []}, "modal"),
        ({"language": "typescript"}, "modal"),
    ],
)
async def test_the_kind_follows_from_the_members(
    edge: Edge, backend: Backend, given: dict[str, Any], kind: str
) -> None:
    backend.on(
        "CreateSandboxConfig",
        lambda request: wire.CreateSandboxConfigResponse(sandbox_config=config(request.type, request.config_json)),
    )
    shown = (await edge.http.post("/v1/sandbox-config/", json={"config": given})).json()
    assert (shown["id"], shown["type"]) == (CONFIG_ID, kind)
    assert shown["organization_id"].startswith("org-")
    assert given.items() <= shown["config"].items()
    assert len(shown["config"]) >= 3


async def test_settings_are_made_kept_replaced_and_deleted(edge: Edge, backend: Backend) -> None:
    def exists(_: Any) -> Any:
        raise AlreadyExists("there are settings already", reason="SANDBOX_CONFIG_EXISTS")

    def updated(request: Any) -> Any:
        return wire.UpdateSandboxConfigResponse(sandbox_config=config(text=request.config_json))

    backend.on("CreateSandboxConfig", exists)
    backend.on("EnsureSandboxConfig", lambda asked: wire.EnsureSandboxConfigResponse(sandbox_config=config(asked.type)))
    backend.on("UpdateSandboxConfig", updated)
    backend.on("DeleteSandboxConfig", lambda _: wire.DeleteSandboxConfigResponse())
    backend.on("ListSandboxConfigs", lambda _: wire.ListSandboxConfigsResponse(sandbox_configs=[config()]))
    backend.on(
        "InstallSandboxPackages", lambda _: wire.InstallSandboxPackagesResponse(sandbox_config=config(text='{"x":1}'))
    )
    http, root = edge.http, "/v1/sandbox-config"
    assert (await http.post(f"{root}/local", json={"use_venv": True})).json()["config"]["use_venv"] is True
    assert (await http.post(f"{root}/e2b/default")).json()["type"] == "e2b"
    defaults: dict[str, Any] = {"sandbox_dir": None, "use_venv": False, "venv_name": "venv", "pip_requirements": []}
    assert (await http.post(f"{root}/local/default")).json()["config"] == defaults
    assert (await http.post(f"{root}/local/recreate-venv")).json()["config"] == defaults | {"x": 1}
    patched = await http.patch(f"{root}/{CONFIG_ID}", json={"config": {"venv_name": "mine"}})
    assert patched.json()["config"] == defaults | {"venv_name": "mine"}
    assert [each["id"] for each in (await http.get(f"{root}/", params={"limit": 5})).json()] == [CONFIG_ID]
    assert (await http.delete(f"{root}/{CONFIG_ID}")).status_code == 204
    [listed] = backend.requests("ListSandboxConfigs")
    assert (listed.page.page_size, listed.type) == (5, "")
    assert backend.requests("InstallSandboxPackages")[0].id == CONFIG_ID


async def test_variables_of_a_sandbox_are_added_changed_listed_and_removed(edge: Edge, backend: Backend) -> None:
    made = variable(sandbox_config_id=CONFIG_ID)
    backend.on("CreateVariable", lambda _: wire.CreateVariableResponse(variable=made))
    backend.on("UpdateVariable", lambda _: wire.UpdateVariableResponse(variable=made))
    backend.on("ListVariables", lambda _: wire.ListVariablesResponse(variables=[made]))
    backend.on("DeleteVariable", lambda _: wire.DeleteVariableResponse())
    http, of_config = edge.http, f"/v1/sandbox-config/{CONFIG_ID}/environment-variable"
    of_variable = f"/v1/sandbox-config/environment-variable/{VARIABLE_ID}"
    shown = (await http.post(of_config, json={"key": "KEY", "value": "s3cret"})).json()
    assert (shown["id"], shown["key"], shown["value"], shown["description"]) == (VARIABLE_ID, "KEY", MASK, None)
    assert (shown["sandbox_config_id"], shown["value_enc"]) == (CONFIG_ID, MASK)
    assert (await http.get(of_config, params={"after": VARIABLE_ID})).json() == [shown]
    assert (await http.patch(of_variable, json={"value": "new", "description": "mine"})).json() == shown
    assert (await http.delete(of_variable)).status_code == 204
    [change] = backend.requests("UpdateVariable")
    assert sorted(change.update_mask.paths) == ["description", "value"]
    assert backend.requests("CreateVariable")[0].variable.value == "s3cret"
    assert (await http.delete(f"/v1/sandbox-config/environment-variable/{CONFIG_ID}")).status_code == 422


async def test_a_tool_whose_variables_are_refused_is_not_there(edge: Edge, backend: Backend) -> None:
    def refuse(_: Any) -> Any:
        raise InvalidArgument("the environment variable PATH is set by Loci", reason="ENVIRONMENT_INVALID")

    made = tool_pb2.Tool(id=samples.TOOL_ID, name="roll", json_schema_json="{}")
    backend.on("CreateTool", lambda _: tool_service_pb2.CreateToolResponse(tool=made))
    backend.on("DeleteTool", lambda _: tool_service_pb2.DeleteToolResponse())
    backend.on("SetEnvironment", refuse)
    body = {"source_code": "def roll(): ...", "environment": {"PATH": "s3cret"}}
    answer = await edge.http.post("/v1/tools", json=body)
    assert (answer.status_code, "s3cret" in answer.text) == (422, False)
    assert [request.tool_id for request in backend.requests("DeleteTool")] == [samples.TOOL_ID]
