"""Letta's MCP server, asked by an MCP client: program.py MODEL, the address in LETTA_BASE_URL. Prints what it did."""

import asyncio
import json
import os
import sys
from typing import Any

from fastmcp import Client


async def main(model: str) -> dict:
    server = {"command": "letta-mcp-server", "args": [], "env": dict(os.environ)}
    async with Client({"mcpServers": {"letta": server}}) as client:

        async def call(tool: str, **arguments: Any) -> dict:
            return json.loads((await client.call_tool(tool, arguments)).content[0].text)

        made = await call("letta_create_agent", name="From MCP", model=model, human_memory="Ada")
        agent_id = made["agent"]["id"]
        seen = {
            "listed": "From MCP" in [agent["name"] for agent in (await call("letta_list_agents"))["agents"]],
            "said": (await call("letta_send_message", agent_id=agent_id, message="say hello"))["response"],
            "history": [
                message["content"]
                for message in (await call("letta_get_conversation_history", agent_id=agent_id))["messages"]
                if message["type"] == "assistant_message"
            ],
            "tools": (await call("letta_list_tools"))["success"],
        }
        await call("letta_update_agent", agent_id=agent_id, name="Renamed")
        seen["renamed"] = (await call("letta_get_agent", agent_id=agent_id))["agent"]["name"]
        await call("letta_delete_agent", agent_id=agent_id, confirm=True)
        seen["gone"] = not (await call("letta_get_agent", agent_id=agent_id))["success"]
        return seen


if __name__ == "__main__":
    print(json.dumps(asyncio.run(main(sys.argv[1]))))
