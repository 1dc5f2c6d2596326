"""JavaScript and TypeScript in every sandbox, and what annotations make of arguments in Python."""

import json
import ssl
from pathlib import Path
from typing import Any

import pytest

from services.tool_runner.core.job import MIB, ExitReason, Job, Language, Limits, Mode, Result, SandboxUnavailable
from services.tool_runner.core.ports import Connection, Ends, Sandbox
from tests.integration.tool_runner.node_worker import make_certificate

LIMITS = Limits(seconds=10, memory=512 * MIB, processes=32, disk=16 * MIB)


async def call(sandbox: Sandbox, source: str, ends: Ends | None = None, **job: Any) -> Result:
    whole = {"function": "tool", "arguments": {}, "limits": LIMITS, "language": Language.NODE, **job}
    try:
        return await sandbox.run(Job(source, **whole), ends or Ends())
    except SandboxUnavailable as error:
        pytest.skip(str(error))


async def value(sandbox: Sandbox, source: str, **job: Any) -> Any:
    result = await call(sandbox, source, **job)
    assert result.reason is ExitReason.OK, result
    assert result.result is not None
    return json.loads(result.result)


async def test_typescript_and_javascript_are_called(sandbox: Sandbox) -> None:
    source = """
    import { readFileSync, writeFileSync } from 'node:fs';
    enum Kind { A = 'a' }
    export async function tool(second: number, first: Kind = Kind.A): Promise<unknown> {
      console.log('out'); console.error('err');
      writeFileSync('made.txt', 'made');
      return [first, second, process.env.LETTA_AGENT_ID, process.cwd()];
    }"""
    result = await call(sandbox, source, arguments={"second": 2}, environment={"LETTA_AGENT_ID": "agent-1"})
    assert (result.reason, json.loads(result.result or "")) == (ExitReason.OK, ["a", 2, "agent-1", "/work"]), result
    assert (result.stdout, result.stderr) == ("out\n", "err\n")
    assert [(file.name, file.content) for file in result.files] == [("made.txt", b"made")]
    plain = "module.exports = (a, b) => [a, b]"
    job: dict[str, Any] = {"arguments": {"y": 2, "x": 1}, "parameters": ("x", "y")}
    assert await value(sandbox, plain, **job) == [1, 2]


async def test_a_program_gives_the_value_of_its_last_expression(sandbox: Sandbox) -> None:
    source = "const wait: Promise<number> = Promise.resolve(2);\nconst two = await wait;\ntwo * 21"
    assert await value(sandbox, source, mode=Mode.SCRIPT) == 42


async def test_agent_state_is_given_and_its_edits_come_back(sandbox: Sandbox) -> None:
    state = json.dumps({"memory": {"blocks": [{"label": "human", "value": "a"}]}})
    source = "export const tool = (agent_state) => { agent_state.memory.getBlock('human').value = 'b' }"
    result = await call(sandbox, source, agent_state=state)
    assert (result.reason, result.block_edits) == (ExitReason.OK, (("human", "b"),)), result


@pytest.mark.parametrize(
    ("source", "reason", "says"),
    [
        ("export function tool() {\n  throw new TypeError('bad') }", ExitReason.RAISED, "bad     at tool (tool.ts:2:"),
        ("export const tool = () => process.exit(3)", ExitReason.RAISED, "exit code 3"),
        ("export const tool = () => process.kill(process.pid, 'SIGKILL')", ExitReason.KILLED, "SIGKILL"),
        ("export const tool = () => { for (;;) {} }", ExitReason.TIMEOUT, "no result"),
        ("export const tool = () => { const a = []; for (;;) a.push({ a }) }", ExitReason.MEMORY, "memory"),
        ("export const tool = () => { const a = []; for (;;) a.push(Buffer.alloc(9e6, 1)) }",
         ExitReason.MEMORY, "memory"),
        ("export const tool = () => { for (;;) console.log('x'.repeat(1e6)) }", ExitReason.OUTPUT_TOO_LARGE, "printed"),
        ("export const tool = () => 'x'.repeat(2e6)", ExitReason.OUTPUT_TOO_LARGE, "2000002 bytes"),
        ("export const tool = (x: number => x", ExitReason.RAISED, "SyntaxError"),
    ],
)  # fmt: skip
async def test_what_goes_wrong_is_told(sandbox: Sandbox, source: str, reason: ExitReason, says: str) -> None:
    limits = Limits(seconds=3 if reason is ExitReason.TIMEOUT else 20, memory=256 * MIB, processes=32)
    result = await call(sandbox, source, limits=limits)
    assert result.reason is reason, result
    assert result.error is not None
    assert says in f"{result.error.type} {result.error.message} {result.error.traceback}"
    assert await value(sandbox, "export const tool = () => 'well'") == "well"


class Answering:
    """A tunnel's end that answers whatever it is asked with the first line of it, as every host that there is."""

    def __init__(self, context: ssl.SSLContext, authority: str) -> None:
        self._context = context
        self.authority = authority

    async def serve(self, connection: Connection) -> None:
        asked = await connection.read()
        if not asked.startswith(b"CONNECT"):
            await connection.write(_answer(asked))
        else:
            await connection.write(b"HTTP/1.1 200 OK\r\n\r\n")
            await self._serve_tls(connection)
        await connection.close()

    async def _serve_tls(self, connection: Connection) -> None:
        into, out = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = self._context.wrap_bio(into, out, server_side=True)
        while True:
            into.write(await connection.read())
            try:
                tls.write(_answer(tls.read()))
            except ssl.SSLWantReadError:
                await connection.write(out.read())
                continue
            await connection.write(out.read())
            return


def _answer(asked: bytes) -> bytes:
    line = asked.split(b"\r\n")[0]
    return b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\nconnection: close\r\n\r\n%s" % (len(line), line)


async def test_fetch_goes_through_the_tunnel(sandbox: Sandbox, tmp_path: Path) -> None:
    source = "export const tool = async (url: string) => (await fetch(url)).text()"
    certificate, key = make_certificate(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    tunnel = Answering(context, certificate.read_text())
    for url, asked in (
        ("http://api.test/x", "GET http://api.test/x HTTP/1.1"),
        ("https://api.test/x", "GET /x HTTP/1.1"),
    ):
        result = await call(sandbox, source, Ends(tunnel=tunnel), arguments={"url": url})
        assert (result.reason, result.result) == (ExitReason.OK, f'"{asked}"'), result
    assert (await call(sandbox, source, arguments={"url": url})).reason is ExitReason.RAISED


async def test_annotations_of_a_python_tool_make_what_they_say(sandbox: Sandbox) -> None:
    source = """
import enum
from dataclasses import dataclass
class Color(enum.Enum):
    RED = "red"
@dataclass
class Item:
    name: str
    color: Color
def tool(items: list[Item], day: "datetime.date" = None):
    return [type(items[0]).__name__, items[0].color.name]
"""
    arguments = {"items": [{"name": "a", "color": "red"}]}
    assert await value(sandbox, source, arguments=arguments, language=Language.PYTHON) == ["Item", "RED"]
