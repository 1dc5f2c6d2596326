"""Databases of MCP servers that are programs: TCP to the hosts and ports that the operator names."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from services.tool_runner.core.job import Language, Limits
from services.tool_runner.core.network_policy import parse_tcp
from services.tool_runner.core.ports import Sandbox
from services.tool_runner.egress import destinations
from services.tool_runner.egress.egress import Egress, EgressSettings
from services.tool_runner.layers.install_job import LayerSettings
from services.tool_runner.layers.layers import Layers
from services.tool_runner.mcp.client import McpClient, Target, Times
from services.tool_runner.mcp.stdio import SandboxPrograms
from services.tool_runner.mcp_servers.model import Server, Stdio
from tests.integration.tool_runner.harness import OneSandbox

# Its tool speaks to a place as database drivers do: it connects by name, and may have to hear the server first.
_PYTHON = """
import json, socket, sys
def talk(host, port, said):
    with socket.create_connection((host, port), 20) as s:
        heard = s.recv(100) if not said else b""
        s.sendall(said.encode() or b"quit")
        s.shutdown(socket.SHUT_WR)
        while data := s.recv(100):
            heard += data
    return heard.decode()
def say(number, result):
    print(json.dumps({"jsonrpc": "2.0", "id": number, "result": result}), flush=True)
for line in sys.stdin:
    message = json.loads(line)
    method, params = message.get("method"), message.get("params") or {}
    if method == "initialize":
        info = {"name": "db", "version": "1"}
        version = params["protocolVersion"]
        say(message["id"], {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info})
    elif method == "tools/call":
        try:
            text = talk(**params["arguments"])
        except OSError as error:
            text = f"{type(error).__name__}: {error}"
        say(message["id"], {"content": [{"type": "text", "text": text}]})
"""
_NODE = """
const net = require("node:net"), { createInterface } = require("node:readline");
const talk = ({ host, port, said }) => new Promise((done) => {
  let heard = "";
  const s = net.connect(port, host, () => said && s.end(said));
  s.on("data", (data) => { if (!heard && !said) s.end("quit"); heard += data; });
  s.on("end", () => done(heard)).on("error", (error) => done(String(error)));
});
const say = (id, result) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", id, result }) + "\\n");
(async () => {
  for await (const line of createInterface({ input: process.stdin })) {
    const { id, method, params } = JSON.parse(line);
    const serverInfo = { name: "db", version: "1" };
    if (method === "initialize")
      say(id, { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo });
    else if (method === "tools/call")
      say(id, { content: [{ type: "text", text: await talk(params.arguments) }] });
  }
})();
"""
_COMMANDS = {Language.PYTHON: ("python3", "-c", _PYTHON), Language.NODE: ("node", "-e", _NODE)}


@asynccontextmanager
async def _database(*, greets: bool) -> AsyncIterator[int]:
    """Gives back all that it reads, in capitals, after its greeting."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            writer.write(b"\x00 welcome;" if greets else b"")
            writer.write((await reader.read()).upper())
            await writer.drain()
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


@asynccontextmanager
async def _client(
    sandbox: Sandbox, folder: Path, tcp: str, own: tuple[tuple[str, int], ...] = ()
) -> AsyncIterator[McpClient]:
    egress = Egress(EgressSettings(own=own))
    layers = Layers(LayerSettings(folder), OneSandbox(sandbox), egress)
    programs = SandboxPrograms(OneSandbox(sandbox), egress, layers, Limits(), tcp=parse_tcp(tcp))
    client = McpClient(allow_private=False, programs=programs, times=Times(30, 30, 30, 60))
    yield client
    await client.close()
    await layers.close()


def _target(command: tuple[str, ...]) -> Target:
    transport = Stdio(command=command[0], args=command[1:])
    return Target(uuid4(), Server(id=uuid4(), name="program", transport=transport))


async def _talk(client: McpClient, target: Target, host: str, port: int, said: str) -> str:
    arguments = {"host": host, "port": port, "said": said}
    answer: Any = await client.call(target, "talk", arguments, schema={}, seconds=30, listener=lambda line: None)
    text: str = answer["content"][0]["text"]
    return text


@pytest.fixture
def db_internal(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """`db.internal` is this machine; called again, it is where clouds keep their keys."""
    address = "127.0.0.1"

    async def resolve(host: str) -> list[Any]:
        return [ip_address(address if host == "db.internal" else "127.0.0.1")]

    monkeypatch.setattr(destinations, "resolve", resolve)

    def move() -> None:
        nonlocal address
        address = "169.254.169.254"

    return move


@pytest.mark.parametrize("language", Language)
async def test_a_program_reaches_databases_by_their_names(
    bubblewrap_sandbox: Sandbox, tmp_path: Path, db_internal: Callable[[], None], language: Language
) -> None:
    async with _database(greets=True) as first, _database(greets=False) as second:
        tcp = f"db.internal:{first}, db.internal:{second}, localhost:{second}"
        async with _client(bubblewrap_sandbox, tmp_path, tcp) as client:
            target = _target(_COMMANDS[language])
            assert await _talk(client, target, "db.internal", first, "") == "\x00 welcome;QUIT"
            said = "\x16\x03\x01 like TLS " * 20_000
            assert await _talk(client, target, "db.internal", second, said) == said.upper()
            assert await _talk(client, target, "127.0.0.1", second, "x") == "X"
            assert "refused" in (await _talk(client, target, "127.0.0.1", first, "x")).lower()
            db_internal()
            assert "welcome" not in await _talk(client, target, "db.internal", first, "")


async def test_no_other_place_and_no_part_of_loci(
    bubblewrap_sandbox: Sandbox, tmp_path: Path, db_internal: Callable[[], None]
) -> None:
    async with _database(greets=False) as port, _client(bubblewrap_sandbox, tmp_path, "") as client:
        heard = await _talk(client, _target(_COMMANDS[Language.PYTHON]), "127.0.0.1", port, "x")
        assert heard.startswith("ConnectionRefusedError")
    async with _database(greets=False) as port:
        own = (("127.0.0.1", port),)
        async with _client(bubblewrap_sandbox, tmp_path, f"db.internal:{port}", own) as client:
            assert await _talk(client, _target(_COMMANDS[Language.PYTHON]), "db.internal", port, "x") in (
                "",
                "ConnectionResetError: [Errno 104] Connection reset by peer",
            )
