"""Tools and MCP servers."""

from tests.e2e.sdk_methods.world import Cases, World, ids, refused, source

cases = Cases()


@cases("tools.create", "tools.retrieve", "tools.update", "tools.delete")
def tools(world: World) -> None:
    client, name = world.client.tools, world.name("tool")
    made = client.create(
        source_code=source(name),
        description="Says it",
        tags=["t"],
        return_char_limit=500,
        default_requires_approval=True,
        enable_parallel_execution=True,
    )
    found = client.retrieve(made.id)
    assert (found.name, found.tags, found.return_char_limit) == (name, ["t"], 500)
    assert (found.default_requires_approval, found.enable_parallel_execution) == (True, True)
    assert client.update(made.id, description="New", tags=["u"]).tags == ["u"]
    assert client.create(source_code=source(name)).id == made.id
    refused(400, lambda: client.create(source_code="def broken(:"), "line")
    refused(422, lambda: client.create(source_code=source("ok"), return_char_limit=0), "return_char_limit")
    client.delete(made.id)
    refused(404, lambda: client.retrieve(made.id))


@cases("tools.list")
def list_tools(world: World) -> None:
    made = [world.new_tool() for _ in range(2)]
    listed = world.client.tools.list
    assert ids(listed(tool_ids=ids(made), order="asc", limit=1)) == ids(made)
    assert ids(listed(name=made[0].name).items) == [made[0].id]
    assert ids(listed(names=[made[1].name]).items) == [made[1].id]
    assert {one.tool_type for one in listed(tool_types=["letta_core"]).items} == {"letta_core"}
    assert "custom" not in {one.tool_type for one in listed(exclude_tool_types=["custom"], limit=100).items}
    assert "custom" not in {one.tool_type for one in listed(return_only_letta_tools=True, limit=100).items}
    assert made[0].id in ids(listed(search=made[0].name).items)
    refused(422, lambda: listed(tool_types=["magic"]), "magic")


@cases("tools.upsert")
def upsert(world: World) -> None:
    name = world.name("tool")
    first = world.client.tools.upsert(source_code=source(name))
    again = world.client.tools.upsert(source_code=source(name), description="Again", tags=["x"])
    assert (again.id, again.tags) == (first.id, ["x"])


@cases("tools.search")
def search(world: World) -> None:
    found = world.client.tools.search(query="double a number", limit=5, search_mode="fts")
    assert world.double.id in [one.tool.id for one in found]
    assert world.client.tools.search(query="double", tool_types=["custom"], search_mode="hybrid")
    refused(422, lambda: world.client.tools.search(query="x", search_mode="magic"), "search_mode")


@cases("mcp_servers.create", "mcp_servers.retrieve", "mcp_servers.update", "mcp_servers.list", "mcp_servers.delete")
def mcp_servers(world: World) -> None:
    client = world.client.mcp_servers
    made = world.new_server()
    assert client.retrieve(made.id).server_name == made.server_name
    assert made.id in [one.id for one in client.list()]
    config = {"mcp_server_type": "streamable_http", "server_url": world.mcp_url}
    renamed = world.name("server")
    assert client.update(made.id, server_name=renamed, config=config).server_name == renamed
    refused(409, lambda: world.new_server(renamed))
    refused(422, lambda: client.create(server_name="bad", config={"mcp_server_type": "pigeon"}))
    assert client.delete(made.id) is None
    refused(404, lambda: client.retrieve(made.id))


@cases("mcp_servers.refresh", "mcp_servers.tools.list", "mcp_servers.tools.retrieve", "mcp_servers.tools.run")
def mcp_tools(world: World) -> None:
    server, client = world.new_server(), world.client.mcp_servers
    client.refresh(server.id)
    client.refresh(server.id, agent_id=world.agent.id)
    # Under another name where other tests of this stack have a tool of its name.
    offered = next(one for one in client.tools.list(server.id) if one.name.startswith("add"))
    tool = client.tools.retrieve(offered.id, mcp_server_id=server.id)
    assert tool.tool_type == "external_mcp"
    result = client.tools.run(tool.id, mcp_server_id=server.id, args={"a": 2, "b": 3})
    assert (result.status, str(result.func_return)) == ("success", "5")
    client.delete(server.id)
