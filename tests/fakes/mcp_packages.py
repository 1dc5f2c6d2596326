"""MCP servers as packages: the official Python SDK repacked from what is installed here, and one for npx."""

import base64
import hashlib
import io
import json
import re
import zipfile
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement

from tests.fakes import mcp_server
from tests.fakes.package_index import wheel

PROGRAM = "test-mcp-server"
_MODULE = "import asyncio\n\ndef main():\n    asyncio.run(_program())\n"

# Speaks just enough of the protocol, by hand: what is tested is how a program of npm is found and run.
NPM_SERVER = """#!/usr/bin/env node
import { createInterface } from "node:readline";
const say = (message) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\\n");
const inputSchema = { type: "object", properties: {} };
const tool = { name: "argv", description: "What it was started with.", inputSchema };
for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line);
  if (method === "initialize") {
    const serverInfo = { name: "tiny", version: "1" };
    say({ id, result: { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo } });
  } else if (method === "tools/list") say({ id, result: { tools: [tool] } });
  else if (method === "tools/call") {
    const text = JSON.stringify([process.argv.slice(2), process.env.MARK]);
    say({ id, result: { content: [{ type: "text", text }] } });
  }
}
"""


def npm_files() -> dict[str, str]:
    """The files of the package `@loci/tiny-mcp`."""
    manifest = {"name": "@loci/tiny-mcp", "version": "1.0.0", "type": "module", "bin": {"tiny": "bin/tiny.js"}}
    return {"package.json": json.dumps(manifest), "bin/tiny.js": NPM_SERVER}


# As many are written: CommonJS, with the usual ways to read the command line and to see whether it is the program.
COMMON_SERVER = """#!/usr/bin/env node
const { createInterface } = require("node:readline"), { parseArgs } = require("node:util"), http = require("node:http");
const { values } = parseArgs({ options: { mode: { type: "string" } } });
const say = (message) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\\n");
const inputSchema = { type: "object", properties: { url: { type: "string" } } };
const byModule = (url) => new Promise((done, failed) => http.get(url, (answer) => {
  let text = ""; answer.on("data", (chunk) => text += chunk); answer.on("end", () => done(text));
}).on("error", failed));
const tools = {
  mode: () => values.mode,
  fetch: async ({ url }) => (await fetch(url)).text(),
  http: ({ url }) => byModule(url),
  note: ({ url }) => require("node:fs").appendFileSync(__dirname + "/notes.txt", url + ";"),
  notes: () => require("node:fs").readFileSync(__dirname + "/notes.txt", "utf8"),
};
async function main() {
  for await (const line of createInterface({ input: process.stdin })) {
    const { id, method, params } = JSON.parse(line);
    if (method === "initialize") {
      const serverInfo = { name: "common", version: "1" };
      say({ id, result: { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo } });
    } else if (method === "tools/list") {
      say({ id, result: { tools: Object.keys(tools).map((name) => ({ name, description: name, inputSchema })) } });
    } else if (method === "tools/call") {
      const text = await Promise.resolve().then(() => tools[params.name](params.arguments)).catch(String);
      say({ id, result: { content: [{ type: "text", text: `${text}` }] } });
    }
  }
}
if (require.main === module) main();
"""


def common_files() -> dict[str, str]:
    """The files of the package `common-mcp`, whose program has two names."""
    manifest = {"name": "common-mcp", "version": "1.0.0", "bin": {"common": "cli.js", "common-server": "cli.js"}}
    return {"package.json": json.dumps(manifest), "cli.js": COMMON_SERVER}


def fill(folder: Path) -> None:
    """Wheels of the SDK, of all that it needs, and of a server that is made with it."""
    for found in _closure("mcp"):
        (folder / _file_name(found)).write_bytes(_repacked(found))
    source = Path(mcp_server.__file__).read_text().partition('if __name__ == "__main__"')[0]
    entry = f"[console_scripts]\n{PROGRAM} = test_mcp_server:main\n"
    made = wheel(
        "test_mcp_server",
        "1.0",
        {"test_mcp_server.py": source + _MODULE, "test_mcp_server-1.0.dist-info/entry_points.txt": entry},
        requires=("mcp",),
    )
    (folder / "test_mcp_server-1.0-py3-none-any.whl").write_bytes(made)


def _closure(name: str) -> list[Distribution]:
    found: dict[str, Distribution] = {}
    seen: set[tuple[str, str]] = set()
    left = [(name, "")]
    while left:
        wanted, extra = left.pop()
        one = re.sub(r"[-_.]+", "-", wanted).lower()
        if (one, extra) in seen:
            continue
        seen.add((one, extra))
        found[one] = distribution(one)
        for needed in map(Requirement, found[one].requires or ()):
            if needed.marker is None or needed.marker.evaluate({"extra": extra}):
                left += [(needed.name, further) for further in ("", *needed.extras)]
    return list(found.values())


def _file_name(found: Distribution) -> str:
    tag = next(line for line in (found.read_text("WHEEL") or "").splitlines() if line.startswith("Tag: "))
    name = re.sub(r"[-_.]+", "_", found.metadata["Name"])
    return f"{name}-{found.version}-{tag.removeprefix('Tag: ')}.whl"


def _repacked(found: Distribution) -> bytes:
    content: dict[str, bytes] = {}
    record_path = ""
    for path in found.files or ():
        if path.name == "RECORD":
            record_path = str(path)
        elif ".." not in path.parts and "__pycache__" not in path.parts and path.name not in ("INSTALLER", "REQUESTED"):
            content[str(path)] = Path(str(found.locate_file(path))).read_bytes()
    record = "".join(f"{path},sha256={_hash(data)},{len(data)}\n" for path, data in content.items())
    content[record_path] = f"{record}{record_path},,\n".encode()
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in content.items():
            archive.writestr(name, data)
    return made.getvalue()


def _hash(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
