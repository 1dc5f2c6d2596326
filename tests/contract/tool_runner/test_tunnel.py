"""Connections of a tool: they end in the tunnel of its call and nowhere else, and neither side floods the other."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from services.tool_runner.core.job import MIB, ExitReason, Job, Language, Limits, Result
from services.tool_runner.core.ports import Connection, Ends, Sandbox
from services.tool_runner.sandboxes.protocol.wire import WINDOW_BYTES
from tests.polling import until

LIMITS = Limits(seconds=15, memory=256 * MIB, processes=160, disk=16 * MIB)
CONNECT = "import socket\ndef connect(): return socket.create_connection(('127.0.0.1', 8118))\n"


class Tunnel:
    """Serves each connection by the given function; counts them."""

    def __init__(self, serve: Callable[[Connection], Awaitable[None]], authority: str = "") -> None:
        self.authority = authority
        self.served = self.at_once = self.most_at_once = 0
        self._serve = serve

    async def serve(self, connection: Connection) -> None:
        self.served += 1
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            await self._serve(connection)
        finally:
            self.at_once -= 1


async def shout(connection: Connection) -> None:
    """Everything in capitals; then, when the tool is through, a last word."""
    while data := await connection.read():
        await connection.write(data.upper())
    await connection.write(b"!")
    await connection.close()


async def run(sandbox: Sandbox, source: str, tunnel: Tunnel, **arguments: Any) -> Result:
    return await sandbox.run(Job(CONNECT + source, "tool", arguments, {}, LIMITS), Ends(tunnel=tunnel))


def value(result: Result) -> Any:
    assert result.reason is ExitReason.OK, result
    return json.loads(result.result or "")


async def test_what_is_sent_comes_back(sandbox: Sandbox) -> None:
    source = (
        "import threading\n"
        "def tool(size):\n"
        "    with connect() as s:\n"
        "        t = threading.Thread(target=lambda: (s.sendall(b'a' * size), s.shutdown(socket.SHUT_WR)))\n"
        "        t.start()\n"
        "        count, last = 0, b''\n"
        "        while data := s.recv(65536):\n"
        "            count, last = count + len(data), data[-1:]\n"
        "        return [count, last.decode()]"
    )
    tunnel = Tunnel(shout)
    for size in (0, 5, 3 * WINDOW_BYTES + 1):
        assert value(await run(sandbox, source, tunnel, size=size)) == [size + 1, "!"]
    assert (tunnel.served, tunnel.at_once) == (3, 0)


async def test_more_connections_than_fit_take_turns(sandbox: Sandbox) -> None:
    source = (
        "import threading\n"
        "def tool():\n"
        "    got = []\n"
        "    def one(n):\n"
        "        with connect() as s:\n"
        "            s.sendall(b'n%d\\n' % n); s.shutdown(socket.SHUT_WR)\n"
        "            got.append(s.makefile().read())\n"
        "    threads = [threading.Thread(target=one, args=(n,)) for n in range(100)]\n"
        "    for t in threads: t.start()\n"
        "    for t in threads: t.join()\n"
        "    return sorted(got) == sorted(f'N{n}\\n!' for n in range(100))"
    )

    async def slowly(connection: Connection) -> None:
        await asyncio.sleep(0.2)
        await shout(connection)

    tunnel = Tunnel(slowly)
    assert value(await run(sandbox, source, tunnel)) is True
    assert tunnel.served == 100
    assert 1 < tunnel.most_at_once <= 64


async def test_a_tunnel_that_does_not_read_holds_the_tool_back(sandbox: Sandbox) -> None:
    source = (
        "def tool():\n"
        "    with connect() as s:\n"
        "        s.settimeout(3); sent = 0\n"
        "        try:\n"
        "            while True: sent += s.send(bytes(65536))\n"
        "        except TimeoutError: return sent"
    )

    async def never(connection: Connection) -> None:
        await asyncio.sleep(60)

    sent = value(await run(sandbox, source, Tunnel(never)))
    assert WINDOW_BYTES <= sent < 32 * MIB  # the window, and what the kernel holds of a connection


async def test_a_tool_that_does_not_read_holds_the_tunnel_back(sandbox: Sandbox) -> None:
    written = 0

    async def flood(connection: Connection) -> None:
        nonlocal written
        while True:
            await connection.write(bytes(65536))
            written += 65536

    async def serve(connection: Connection) -> None:
        if tunnel.served == 1:
            with suppress(ConnectionError):  # at the tool's end
                await flood(connection)
            return
        # The other connection: the tool ends when nothing more of the flood is taken.
        before = -1
        while before < WINDOW_BYTES or before < written:
            before = written
            await asyncio.sleep(0.3)

    source = "def tool():\n    with connect(), connect() as gate: gate.recv(1)\n    return 1"
    tunnel = Tunnel(serve)
    assert value(await run(sandbox, source, tunnel)) == 1
    assert WINDOW_BYTES <= written < 32 * MIB


async def test_either_side_may_hang_up(sandbox: Sandbox) -> None:
    seen: list[str] = []

    async def chatter(connection: Connection) -> None:
        try:
            while True:
                await connection.write(b"x" * 1000)
                await asyncio.sleep(0.01)
        except ConnectionError:
            seen.append("the tool hung up")

    async def serve(connection: Connection) -> None:
        if tunnel.served == 1:
            await chatter(connection)
        else:  # the tool waits until it is noticed
            await until(lambda: seen)
            await connection.close()

    source = "def tool():\n    s = connect(); s.recv(10); s.close()\n    connect().recv(1)\n    return 1"
    tunnel = Tunnel(serve)
    assert value(await run(sandbox, source, tunnel)) == 1
    assert seen == ["the tool hung up"]

    async def leave(connection: Connection) -> None:
        await connection.write(b"bye")

    source = "def tool():\n    return connect().makefile().read()"
    assert value(await run(sandbox, source, Tunnel(leave))) == "bye"


async def test_a_tunnel_that_fails_ends_its_connection_alone(sandbox: Sandbox) -> None:
    async def fail(connection: Connection) -> None:
        raise ConnectionError("no such host")

    source = "def tool():\n    return [connect().makefile().read() for _ in range(2)]"
    assert value(await run(sandbox, source, Tunnel(fail))) == ["", ""]


async def test_tunnels_end_with_their_call(sandbox: Sandbox) -> None:
    ended = asyncio.Event()

    async def wait(connection: Connection) -> None:
        await connection.write(b"x")
        try:
            await connection.read()
        finally:
            ended.set()

    source = "def tool():\n    global kept\n    kept = connect()\n    kept.recv(1)\n    return 1"
    assert value(await run(sandbox, source, Tunnel(wait))) == 1
    assert ended.is_set()


async def test_the_way_out_is_in_the_environment(sandbox: Sandbox) -> None:
    source = (
        "import os, ssl\n"
        "def tool():\n"
        "    bundle = open(os.environ['SSL_CERT_FILE']).read()\n"
        "    names = ('HTTP_PROXY', 'HTTPS_PROXY', 'http_proxy', 'https_proxy')\n"
        "    certificates = {os.environ[n] for n in ('REQUESTS_CA_BUNDLE', 'CURL_CA_BUNDLE', 'NODE_EXTRA_CA_CERTS')}\n"
        "    return [{os.environ[n] for n in names}, os.environ['NO_PROXY'], 'MARKED' in bundle,\n"
        "            certificates == {os.environ['SSL_CERT_FILE']}]"
    )
    result = await run(sandbox, source, Tunnel(shout, authority="-----MARKED-----\n"))
    assert value(result) == [["http://127.0.0.1:8118"], "", True, True]


async def test_without_a_tunnel_there_is_no_way(sandbox: Sandbox) -> None:
    source = (
        "import os\ndef tool():\n"
        "    try: connect()\n"
        "    except OSError as error: return [type(error).__name__, os.environ.get('HTTP_PROXY')]"
    )
    result = await sandbox.run(Job(CONNECT + source, "tool", {}, {}, LIMITS))
    assert value(result) == ["ConnectionRefusedError", None]


async def test_a_session_has_connections_in_each_of_its_calls(sandbox: Sandbox) -> None:
    source = CONNECT + "def tool():\n    s = connect(); s.sendall(b'a'); return s.recv(1).decode()"
    for _ in range(3):
        job = Job(source, "tool", {}, {}, LIMITS, session="t:1", tenant="t")
        assert value(await sandbox.run(job, Ends(tunnel=Tunnel(shout)))) == "A"
    await sandbox.end_session("t:1")


async def test_node_has_the_same_way(sandbox: Sandbox) -> None:
    source = (
        "import net from 'node:net';\n"
        "export function tool(): Promise<string> {\n"
        "  return new Promise((done) => {\n"
        "    const s = net.connect(8118, '127.0.0.1', () => s.end('abc')); let got = '';\n"
        "    s.on('data', (d) => (got += d)); s.on('end', () => done(got + process.env.HTTPS_PROXY));\n"
        "  });\n"
        "}"
    )
    for authority in ("", "-----MARKED-----\n"):
        job = Job(source, "tool", {}, {}, LIMITS, Language.NODE)
        result = await sandbox.run(job, Ends(tunnel=Tunnel(shout, authority)))
        assert value(result) == "ABC!http://127.0.0.1:8118"


async def test_who_has_read_the_end_may_still_write(sandbox: Sandbox) -> None:
    heard = 0

    async def refuse(connection: Connection) -> None:
        nonlocal heard
        if tunnel.served == 2:  # the tool waits until all of it is heard
            await until(lambda: heard == 100_000)
            await connection.close()
            return
        await connection.write(b"no")
        await connection.end()
        while data := await connection.read():
            heard += len(data)

    source = (
        "def tool():\n"
        "    with connect() as s:\n"
        "        said = b''\n"
        "        while data := s.recv(10): said += data\n"
        "        s.sendall(b'x' * 100_000)\n"
        "        connect().recv(1)\n"
        "        return said.decode()"
    )
    tunnel = Tunnel(refuse)
    assert value(await run(sandbox, source, tunnel)) == "no"
    assert heard == 100_000
