"""Runs inside a sandbox: listens at the addresses of databases, leads what connects there to the proxy, and becomes the
program. Standard library only.

Its arguments: JSON [[address, port, host]...], then the program's command. The sandbox has no network; /etc/hosts names
an address of its own for each host, so that programs find it under the name that they know.
"""

import asyncio
import contextlib
import json
import os
import signal
import socket
import sys

_PROXY = ("127.0.0.1", 8118)
_CHUNK = 1 << 16
_NOT_FOUND = 127


def main() -> None:
    """Listens, and becomes the program."""
    places, *command = sys.argv[1:]
    listeners = [(listen(address, port), host, port) for address, port, host in json.loads(places)]
    if os.fork() == 0:
        serve(listeners)
    for listener, _, _ in listeners:
        listener.close()
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, and the program would, too
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvp(command[0], command)
    except OSError as error:
        print(f"{command[0]} cannot be started: {error.strerror}", file=sys.stderr)
        sys.exit(_NOT_FOUND)


def listen(address: str, port: int) -> socket.socket:
    """Returns a listening socket."""
    try:
        return socket.create_server((address, port))
    except OSError as error:
        print(f"nothing can listen at {address}:{port} (LOCI_MCP_STDIO_TCP): {error.strerror}", file=sys.stderr)
        sys.exit(_NOT_FOUND)


def serve(listeners: list[tuple[socket.socket, str, int]]) -> None:
    """Serves until the sandbox ends. The program's streams are not held: their end is seen by who speaks to it."""
    os.setsid()
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    try:
        asyncio.run(serve_all(listeners))
    finally:
        os._exit(0)


async def serve_all(listeners: list[tuple[socket.socket, str, int]]) -> None:
    """Accepts at all of them."""
    for listener, host, port in listeners:

        async def lead(
            reader: asyncio.StreamReader, writer: asyncio.StreamWriter, target: str = f"{host}:{port}"
        ) -> None:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
                await connect(target, reader, writer)
            writer.close()

        await asyncio.start_server(lead, sock=listener)
    await asyncio.Event().wait()


async def connect(target: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Passes on what both sides say, once the proxy says that the target is reached."""
    from_proxy, to_proxy = await asyncio.open_connection(*_PROXY)
    try:
        to_proxy.write(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode())
        head = await from_proxy.readuntil(b"\r\n\r\n")
        if head.split(b" ", 2)[1:2] == [b"200"]:
            await asyncio.gather(move(reader, to_proxy), move(from_proxy, writer))
    finally:
        to_proxy.close()


async def move(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Passes on what comes, and its end."""
    while data := await reader.read(_CHUNK):
        writer.write(data)
        await writer.drain()
    with contextlib.suppress(OSError):
        writer.write_eof()


if __name__ == "__main__":
    main()
