"""What a tenant has beside what a path may name."""

from __future__ import annotations

import time
from typing import Any

from tests.e2e.sdk_methods.world import World

_TOMORROW = 86_400


def more_things(world: World, there: dict[str, str]) -> dict[str, Any]:
    """Makes what a tenant has beside `things`, some of it for the agent that is there."""
    return {
        **_of_agent(world, there["agent_id"]),
        **_of_conversation(world, there["conversation_id"]),
        **_of_group(world, there["group_id"]),
        **_of_tools(world, there["mcp_server_id"]),
        **_of_tenant(world, there["agent_id"]),
        **_spare(world),
    }


def _of_agent(world: World, agent_id: str) -> dict[str, Any]:
    agent = f"/v1/agents/{agent_id}"
    tomorrow = {"type": "one-time", "scheduled_at": (time.time() + _TOMORROW) * 1_000}
    template = world.client.templates.create(type="agent", agent_id=agent_id, name=world.name("template"))
    checkpoint = world.get(f"{agent}/checkpoints")[0]["id"]
    rewind = world.post(f"{agent}/rewind", {"checkpoint_id": checkpoint})
    job = world.client.agents.messages.create_async(agent_id, input=f"Again, {world.mark}.")
    list(world.client.runs.messages.stream(job.id))
    response = world.post("/v1/responses", {"model": agent_id, "input": world.mark})
    schedule = {"messages": _said(world), "schedule": tomorrow}
    return {
        "agent_file": world.get(f"{agent}/export"),
        "checkpoint_id": checkpoint,
        "job_id": job.id.replace("run-", "job-"),
        "response_id": response["id"],
        "rewind_id": rewind["id"],
        "scheduled_message_id": world.post(f"{agent}/schedule", schedule)["id"],
        "template_id": template.id,
        "template_name": template.name,
        "template_number": template.latest_version,
        "template_version": f"{template.name}:{template.latest_version}",
    }


def _of_conversation(world: World, talk: str) -> dict[str, Any]:
    client = world.client.conversations.messages
    # To its end: a stream that is dropped is closed wherever it is collected, within the client's own locks, too.
    said = list(client.create(talk, messages=_said(world), background=True))
    run_id = next(one.run_id for one in said if one.run_id)
    message = next(one for one in client.list(talk) if one.message_type == "user_message")
    return {
        "talk_checkpoint_id": world.get(f"/v1/conversations/{talk}/checkpoints")[0]["id"],
        "talk_message_id": message.id,
        "talk_run_id": run_id,
    }


def _of_group(world: World, group_id: str) -> dict[str, Any]:
    path = f"/v1/groups/{group_id}/messages"
    world.post(path, {"messages": _said(world)})
    return {"group_message_id": next(one["id"] for one in world.get(path) if one["message_type"] == "user_message")}


def _of_tools(world: World, server_id: str) -> dict[str, Any]:
    sandbox = world.post("/v1/sandbox-config/", {"config": {"timeout": 5}})["id"]
    variable = {"key": "WORD", "value": world.mark}
    offered = next(one for one in world.client.mcp_servers.tools.list(server_id) if one.name == "add")
    return {
        "call_key": _call_key(world),
        "env_var_id": world.post(f"/v1/sandbox-config/{sandbox}/environment-variable", variable)["id"],
        "execution_file_id": world.upload("/v1/executions/files", f"Kept, {world.mark}.")["id"],
        "mcp_tool_id": offered.id,
        "sandbox_config_id": sandbox,
    }


def _of_tenant(world: World, agent_id: str) -> dict[str, Any]:
    policy = [{"type": "agent", "id": agent_id, "access": ["read_messages"]}]
    token = world.post("/v1/client-side-access-tokens", {"hostname": "https://app.test", "policy": policy})["token"]
    provider = {"name": world.name("provider"), "provider_type": "openai", "api_key": f"sk-{world.mark}"}
    device, whoami = world.new_device(), world.get("/v1/whoami")
    return {
        "connection_id": device.connection_id,
        "device_id": device.device_id,
        "device_row_id": world.get("/v1/environments")["connections"][0]["id"],
        "key_id": world.post("/v1/api-keys/", {"name": world.name("key")})["id"],
        "openai_url": world.openai.base_url,
        "my_user_id": whoami["user_id"],
        "org_id": whoami["organization_id"],
        "provider_id": world.post("/v1/providers/", provider | {"base_url": world.openai.base_url})["id"],
        "token": token,
        "token_id": _bare(token.removeprefix("loci-")),
        "user_id": world.post("/v1/users/", {"name": world.name("user")})["id"],
    }


def _spare(world: World) -> dict[str, Any]:
    """Returns what another route may delete, where two delete the same kind."""
    folder, agent = world.new_folder(), world.new_agent()
    return {
        "spare_agent_id": agent.id,
        "spare_conversation_id": world.client.conversations.create(agent_id=agent.id).id,
        "spare_block_id": world.new_block().id,
        "spare_file_id": world.new_file(folder.id).id,
        "spare_folder_id": folder.id,
        # To be connected to once more, which ends the other connection.
        "spare_connection_id": world.new_device().connection_id,
        "spare_server_name": world.new_server().server_name,
        "spare_user_id": world.post("/v1/users/", {"name": world.name("user")})["id"],
    }


def _bare(token: str) -> str:
    """Returns the id of a token, without its secret."""
    return token[: len("ct-") + 36]


def _said(world: World) -> list[dict[str, str]]:
    return [{"role": "user", "content": f"Hello, {world.mark}."}]


def _call_key(world: World) -> str:
    source = 'def say() -> str:\n    """Say a word."""\n    return "word"\n'
    world.post("/v1/tools/run", {"source_code": source})
    found: dict[str, Any] = world.get("/v1/executions")
    return str(found["executions"][0]["call_key"])
