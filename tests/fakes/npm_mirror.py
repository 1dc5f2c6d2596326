"""A registry of npm on loopback with the packages of a `node_modules` that `npm ci` made: pinned, their hashes checked.

So `npx -y SOME-PACKAGE` is what people write, and what it comes to is what the lock says.
"""

from __future__ import annotations

import io
import json
import tarfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote

_KEPT = (
    *("name", "version", "bin", "dependencies", "optionalDependencies", "peerDependencies", "peerDependenciesMeta"),
    *("engines", "os", "cpu", "libc"),
)


@contextmanager
def npm_mirror(node_modules: Path) -> Iterator[str]:
    """Yields the registry's URL."""
    found = dict(_packages(node_modules))

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = unquote(self.path).strip("/")
            name, _, version = path.partition("/-/")
            if version:
                self._answer(_tarball(found[name, version.removesuffix(".tgz")]))
            elif listing := _listing(found, name, url):
                self._answer(json.dumps(listing).encode())
            else:
                self.send_error(404)

        def _answer(self, body: bytes) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "application/json" if body[:1] == b"{" else "application/octet-stream")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Silent."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield url
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _packages(node_modules: Path) -> Iterator[tuple[tuple[str, str], Path]]:
    """The folder of each (name, version); what lies at the top comes last, and is the latest."""
    for path in sorted(node_modules.rglob("package.json"), key=lambda one: -len(one.parts)):
        inside = path.parent.relative_to(node_modules).parts
        last = len(inside) - inside[::-1].index("node_modules") if "node_modules" in inside else 0
        own = inside[last:]
        if len(own) == (2 if own and own[0].startswith("@") else 1):
            manifest = json.loads(path.read_text())
            yield (manifest["name"], manifest["version"]), path.parent


def _listing(found: dict[tuple[str, str], Path], name: str, url: str) -> dict[str, Any]:
    versions: dict[str, Any] = {}
    for (own, version), folder in found.items():
        if own == name:
            manifest = json.loads((folder / "package.json").read_text())
            kept = {key: manifest[key] for key in _KEPT if key in manifest}
            versions[version] = {**kept, "dist": {"tarball": f"{url}/{name}/-/{version}.tgz"}}
    return {"name": name, "dist-tags": {"latest": list(versions)[-1]}, "versions": versions} if versions else {}


def _tarball(folder: Path) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz", compresslevel=1) as archive:
        for entry in sorted(folder.iterdir()):
            if entry.name != "node_modules":
                archive.add(entry, f"package/{entry.name}")
    return made.getvalue()
