"""A remote device as anybody would write one: it registers, hangs on its socket, and says what it has got."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
from websockets.sync.client import ClientConnection, connect


class Device:
    """A device that is connected."""

    def __init__(self, registered: Any, device_id: str, name: str, socket: ClientConnection) -> None:
        self.connection_id: str = registered["connectionId"]
        self.url: str = registered["wsUrl"]
        self.device_id = device_id
        self.name = name
        self.socket = socket

    def hear(self, timeout: float = 30) -> Any:
        """The next frame."""
        return json.loads(self.socket.recv(timeout))

    def say(self, **frame: Any) -> None:
        """Sends one."""
        self.socket.send(json.dumps(frame))

    def acknowledge(self, frame: Any) -> None:
        """Says that it has got one, and returns when that is known."""
        self.say(type="ack", id=frame["id"])
        self.say(type="ping")
        assert self.hear() == {"type": "pong"}


def register(url: str, device_id: str, *, key: str = "", **body: Any) -> Any:
    """Registers a device; returns the answer."""
    headers = {"authorization": f"Bearer {key}"} if key else {}
    sent = {"deviceId": device_id, **body}
    answer = httpx.post(f"{url}/v1/environments/register", json=sent, headers=headers, timeout=30)
    assert answer.status_code == 200, answer.text
    return answer.json()


@contextmanager
def connected(url: str, device_id: str, *, acknowledges: bool = True, key: str = "", **body: Any) -> Iterator[Device]:
    """A device of Loci at `url`, until it leaves."""
    registered = register(url, device_id, key=key, **body)
    with joined(registered, acknowledges=acknowledges, key=key) as socket:
        yield Device(registered, device_id, body.get("connectionName", device_id), socket)


@contextmanager
def joined(registered: Any, *, acknowledges: bool = True, key: str = "") -> Iterator[ClientConnection]:
    """The socket of a device that has registered."""
    shown = f"&token={key}" if key else ""
    with connect(f"{registered['wsUrl']}?acknowledge={str(acknowledges).lower()}{shown}") as socket:
        yield socket
