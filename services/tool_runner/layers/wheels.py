"""A folder of wheels (LOCI_PIP_FIND_LINKS) as a host that only the installer's way out knows."""

import html
import re
from pathlib import Path
from urllib.parse import quote, unquote

from services.tool_runner.core.ports import Connection, Tunnel
from services.tool_runner.egress.streams import PrefixedStream

HOST = "loci-wheels"
URL = f"http://{HOST}/"
_ENDINGS = (".whl", ".tar.gz", ".zip")
_MOST_HEAD = 64 * 1024
_CHUNK = 256 * 1024
_REQUEST = re.compile(rf"GET {URL}(\S*) HTTP/1\.[01]\r\n".encode())


class WheelTunnel:
    """Answers for HOST from the folder; every other connection is the inner tunnel's."""

    def __init__(self, folder: Path, inner: Tunnel) -> None:
        self.authority = inner.authority
        self._folder = folder
        self._inner = inner

    async def serve(self, connection: Connection) -> None:
        """See `ports.Tunnel`."""
        head = b""
        try:
            while b"\r\n\r\n" not in head and len(head) < _MOST_HEAD and (data := await connection.read()):
                head += data
            request = _REQUEST.match(head)
            if request is None:
                await self._inner.serve(PrefixedStream(head, connection))
                return
            await self._answer(connection, unquote(request[1].decode("latin-1")))
        except ConnectionError:
            return
        finally:
            await connection.close()

    async def _answer(self, connection: Connection, name: str) -> None:
        files = {path.name: path for path in self._folder.iterdir() if path.name.endswith(_ENDINGS)}
        if name == "":
            await connection.write(_response("200 OK", "text/html", _index(sorted(files))))
        elif name in files:
            with files[name].open("rb") as wheel:
                await connection.write(_head("200 OK", "application/zip", files[name].stat().st_size))
                while chunk := wheel.read(_CHUNK):
                    await connection.write(chunk)
        else:
            await connection.write(_response("404 Not Found", "text/plain", b"no such file\n"))


def _index(names: list[str]) -> bytes:
    links = "".join(f'<a href="{quote(name)}">{html.escape(name)}</a><br>\n' for name in names)
    return f"<!DOCTYPE html><html><body>\n{links}</body></html>\n".encode()


def _response(status: str, kind: str, body: bytes) -> bytes:
    return _head(status, kind, len(body)) + body


def _head(status: str, kind: str, size: int) -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {size}\r\nConnection: close\r\n\r\n".encode()
