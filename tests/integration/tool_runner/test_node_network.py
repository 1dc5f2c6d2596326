"""Node's way out: everything goes to the proxy, and what the proxy's authority vouches for is believed."""

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.integration.tool_runner.node_worker import make_certificate, needs_node, run

pytestmark = needs_node

_ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok"
_NO = b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


@dataclass
class Proxy:
    """Answers every host but refused.test itself; `asked`: first lines of what came."""

    certificate: Path
    key: Path
    asked: list[str] = field(default_factory=list)

    def serve(self, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                threading.Thread(target=self._talk, args=(connection,), daemon=True).start()

    def _talk(self, connection: socket.socket) -> None:
        with suppress(OSError), connection:
            line = self._head(connection)
            if "refused.test" in line:
                connection.sendall(_NO)
                return
            if line.startswith("CONNECT"):
                connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
                context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
                context.load_cert_chain(self.certificate, self.key)
                with context.wrap_socket(connection, server_side=True) as inner:
                    self._head(inner)
                    inner.sendall(_ANSWER)
            else:
                connection.sendall(_ANSWER)

    def _head(self, connection: socket.socket) -> str:
        data = b""
        while b"\r\n\r\n" not in data:
            chunk = connection.recv(4096)
            if not chunk:
                raise OSError("gone")
            data += chunk
        line = data.split(b"\r\n")[0].decode()
        self.asked.append(line)
        return line


@pytest.fixture
def proxy(tmp_path: Path) -> Iterator[tuple[Proxy, dict[str, str]]]:
    certificate, key = make_certificate(tmp_path)
    served = Proxy(certificate, key)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=served.serve, args=(listener,), daemon=True).start()
        address = f"http://127.0.0.1:{listener.getsockname()[1]}"
        yield served, {"HTTP_PROXY": address, "HTTPS_PROXY": address, "NO_PROXY": ""}
        listener.shutdown(socket.SHUT_RDWR)


BY_FETCH = "const f = async (url) => (await fetch(url)).text()"
BY_MODULE = """
import http from 'node:http'; import https from 'node:https';
export const f = (url) => new Promise((done, failed) => {
  (url.startsWith('https') ? https : http).get(url, (answer) => {
    let text = ''; answer.on('data', (chunk) => text += chunk); answer.on('end', () => done(text));
  }).on('error', failed);
});"""


@pytest.mark.parametrize("source", [BY_FETCH, BY_MODULE])
def test_everything_goes_through_the_proxy(source: str, proxy: tuple[Proxy, dict[str, str]]) -> None:
    served, environment = proxy
    plain = run(source, {"url": "http://api.test/x?y=1"}, environment=environment)
    assert plain.result == "ok"
    trusting = environment | {"NODE_EXTRA_CA_CERTS": str(served.certificate)}
    assert run(source, {"url": "https://api.test/z"}, environment=trusting).result == "ok"
    wanted = ["GET http://api.test/x?y=1 HTTP/1.1", "CONNECT api.test:443 HTTP/1.1", "GET /z HTTP/1.1"]
    assert [line.replace("api.test:80/", "api.test/") for line in served.asked] == wanted


@pytest.mark.parametrize("source", [BY_FETCH, BY_MODULE])
def test_what_is_refused_or_not_vouched_for_fails(source: str, proxy: tuple[Proxy, dict[str, str]]) -> None:
    _, environment = proxy
    assert "403" in run(source, {"url": "https://refused.test/"}, environment=environment).error
    assert "self-signed certificate" in run(source, {"url": "https://api.test/"}, environment=environment).error


def test_without_a_proxy_nothing_is_reached() -> None:
    assert "fetch failed" in run(BY_FETCH, {"url": "http://127.0.0.1:9/"}).error
