"""Child processes: started by exec, spoken to over one socket that is their stdin and stdout, never left behind.

Not by asyncio's own functions: uvloop forks, which runs the fork handlers of the libraries in this process (gRPC's
can crash the child, since other threads are at work), while `subprocess` uses vfork, which runs none.
"""

import asyncio
import contextlib
import socket
import subprocess
import threading
from collections.abc import Mapping, Sequence


class Child:
    """A running program. `reader` is its stdout; `send` writes to its stdin."""

    def __init__(
        self, process: subprocess.Popen[bytes], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.reader = reader
        self._process = process
        self._writer = writer
        self._exited: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        threading.Thread(target=self._reap, args=(asyncio.get_running_loop(),), daemon=True).start()

    @classmethod
    async def start(
        cls,
        *command: str,
        environment: Mapping[str, str],
        descriptors: Sequence[int] = (),
        errors: int | None = None,
        new_session: bool = False,
        folder: str | None = None,
        longest_line: int = 2**16,
    ) -> "Child":
        """Starts `command` with that environment and those descriptors alone. Raises OSError.

        errors: where its stderr goes, as in subprocess; None: where ours goes. new_session: Ctrl-C does not reach it.
        folder: that it begins in; None: ours.
        longest_line: bytes that `reader.readline` takes at most.
        """
        ours, theirs = socket.socketpair()
        with theirs:
            reader, writer = await asyncio.open_connection(sock=ours, limit=longest_line)
            try:
                # No await from here on, so that a cancel cannot lose the process.
                process = subprocess.Popen(  # noqa: ASYNC220 - vfork and exec, about a millisecond
                    command,
                    stdin=theirs.fileno(),
                    stdout=theirs.fileno(),
                    stderr=errors,
                    env=dict(environment),
                    pass_fds=descriptors,
                    start_new_session=new_session,
                    cwd=folder,
                )
            except OSError:
                writer.close()
                raise
        return cls(process, reader, writer)

    @property
    def pid(self) -> int:
        """Returns the program's process id."""
        return self._process.pid

    async def send(self, data: bytes) -> None:
        """Writes to its stdin. Raises ConnectionError where it no longer reads."""
        try:
            self._writer.write(data)
            await self._writer.drain()
        except RuntimeError as error:  # uvloop's, for a socket that it has seen closed
            raise BrokenPipeError(str(error)) from error

    def end_input(self) -> None:
        """Ends its stdin; it can still answer."""
        with contextlib.suppress(OSError, RuntimeError):
            self._writer.write_eof()

    async def wait(self) -> int:
        """Returns its exit status once it ended: negative for a signal, as in subprocess."""
        return await asyncio.shield(self._exited)

    async def end(self) -> int:
        """Kills it if it runs, waits until it is gone, and closes the socket. Returns its exit status."""
        if not self._exited.done():
            self._process.kill()
        self._writer.close()
        return await self.wait()

    def _reap(self, loop: asyncio.AbstractEventLoop) -> None:
        status = self._process.wait()

        def tell() -> None:
            if not self._exited.done():
                self._exited.set_result(status)

        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits
            loop.call_soon_threadsafe(tell)
