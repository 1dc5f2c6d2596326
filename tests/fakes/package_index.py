"""A package index of Python and of npm on loopback, with packages made on the fly; it says who asked for what."""

import base64
import hashlib
import io
import json
import tarfile
import threading
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def wheel(name: str, version: str, files: Mapping[str, str], requires: tuple[str, ...] = ()) -> bytes:
    """A wheel of pure Python with those files."""
    info = f"{name}-{version}.dist-info"
    needs = "".join(f"Requires-Dist: {each}\n" for each in requires)
    content = {
        **files,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needs}",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{path},sha256={_urlsafe(text)},{len(text.encode())}\n" for path, text in content.items())
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for path, text in {**content, f"{info}/RECORD": f"{record}{info}/RECORD,,\n"}.items():
            archive.writestr(path, text)
    return made.getvalue()


def npm_package(name: str, version: str, files: Mapping[str, str]) -> bytes:
    """A package as npm has them, whose install script would leave a mark."""
    manifest = {"name": name, "version": version, "scripts": {"postinstall": "echo ran > ran.txt"}}
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as archive:
        for path, text in {"package.json": json.dumps(manifest), **files}.items():
            entry = tarfile.TarInfo(f"package/{path}")
            entry.size = len(text.encode())
            archive.addfile(entry, io.BytesIO(text.encode()))
    return made.getvalue()


class PackageIndex:
    """`url`: where it is; `asked`: the paths that were asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self._files: dict[str, tuple[str, bytes]] = {}
        self._wheels: dict[str, list[str]] = {}
        index = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                index.asked.append(self.path)
                kind, body = index._files.get(self.path, ("text/plain", b""))
                self.send_response(200 if body else 404)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                """Silent."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def add_wheel(self, name: str, version: str, files: Mapping[str, str], requires: tuple[str, ...] = ()) -> None:
        """Below /simple."""
        file = f"{name}-{version}-py3-none-any.whl"
        self._files[f"/files/{file}"] = ("application/zip", wheel(name, version, files, requires))
        self._wheels.setdefault(name, []).append(file)
        links = "".join(f'<a href="/files/{each}">{each}</a>' for each in self._wheels[name])
        self._files[f"/simple/{name}/"] = ("text/html", f"<!DOCTYPE html><html><body>{links}</body></html>".encode())

    def add_npm(self, name: str, version: str, files: Mapping[str, str]) -> None:
        """Below /."""
        body = npm_package(name, version, files)
        integrity = "sha512-" + base64.b64encode(hashlib.sha512(body).digest()).decode()
        path = f"/tarballs/{name}-{version}.tgz"
        self._files[path] = ("application/octet-stream", body)
        dist = {"tarball": self.url + path, "integrity": integrity}
        versions = {version: {"name": name, "version": version, "dist": dist}}
        listing = {"name": name, "dist-tags": {"latest": version}, "versions": versions}
        self._files[f"/{name}"] = ("application/json", json.dumps(listing).encode())


@contextmanager
def package_index() -> Iterator[PackageIndex]:
    """Serving in a thread."""
    index = PackageIndex()
    thread = threading.Thread(target=index.server.serve_forever, daemon=True)
    thread.start()
    try:
        yield index
    finally:
        index.server.shutdown()
        index.server.server_close()
        thread.join()


def _urlsafe(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")
