"""Workers in sandboxes of E2B (e2b.dev, or one's own installation): one virtual machine each.

What it promises: each call (or session) in a sandbox of its own, without network, where the worker and the tool are
nobody and what was sent is not theirs to change; killed after the call, and by E2B itself within minutes where this
process died or cannot reach it any more.
What it does not: the isolation is E2B's, and no seccomp rules of ours hold; memory, disk and processors are the
template's, so that LOCI_TOOL_MEMORY_MIB does not count here. What a call is given and gives passes through E2B.

E2B relays what programs write as text, so the worker's side is lines of base64.
"""

import asyncio
import base64
import contextlib
import logging
import shlex
import uuid
from collections.abc import Callable
from typing import Any

import httpx

from services.tool_runner.core.job import SandboxUnavailable
from services.tool_runner.sandboxes.hosted.create import create_or_undo
from services.tool_runner.sandboxes.hosted.parcel import HOME, LAYER, command, worker_archive
from services.tool_runner.sandboxes.hosted.pieces import Pieces
from services.tool_runner.sandboxes.hosted.sdk import import_sdk
from services.tool_runner.sandboxes.ports import DeliveryUnknown, Shape
from services.tool_runner.sandboxes.remote_settings import E2bSettings

_LEASE_SECONDS = 300  # E2B kills a sandbox that long after it last heard of us
_REQUEST_SECONDS = 60.0
_RETRIES = 2  # of requests that may be repeated; the SDK waits in between
_PIECE = 256 * 1024  # of input in one request
_WAITING = 64  # pieces of output; then E2B has to wait
_LONGEST_LINE = 1 << 20
_MOST_COMPLAINT = 4000
_log = logging.getLogger(__name__)


class E2bSource:
    """`sandboxes.ports.WorkerSource`."""

    name = "e2b"

    def __init__(self, settings: E2bSettings, *, lease_seconds: int = _LEASE_SECONDS) -> None:
        self.image = settings.template
        self._settings = settings
        self._lease_seconds = lease_seconds
        self._workers: set[E2bWorker] = set()

    async def start(self, shape: Shape, tenant: str) -> "E2bWorker":
        """See `ports.WorkerSource`. Nothing is of a tenant."""
        sdk = await import_sdk("e2b")
        archive = await asyncio.to_thread(worker_archive, shape.language)
        sandbox = await create_or_undo(self._create(sdk), lambda sandbox: _kill(sdk, sandbox))
        worker = E2bWorker(sdk, sandbox, self._lease_seconds, self._workers.discard)
        self._workers.add(worker)
        try:
            await worker.begin(shape, archive)
        except BaseException:
            await worker.close()
            raise
        return worker

    async def close(self) -> None:
        """See `ports.WorkerSource`."""
        await asyncio.gather(*(worker.close() for worker in list(self._workers)))

    async def _create(self, sdk: Any) -> Any:
        try:
            return await sdk.AsyncSandbox.create(
                self._settings.template,
                timeout=self._lease_seconds,
                metadata={"app": "loci", "part": "tool_runner"},
                allow_internet_access=False,
                lifecycle={"on_timeout": "kill"},
                idempotency_key=str(uuid.uuid4()),
                api_key=self._settings.api_key,
                domain=self._settings.domain,
                api_url=self._settings.api_url or None,
                sandbox_url=self._settings.sandbox_url or None,
                debug=False,
                request_timeout=_REQUEST_SECONDS,
                retries=_RETRIES,
            )
        except _failures(sdk) as error:
            raise SandboxUnavailable(_sentence(sdk, error)) from error


class E2bWorker:
    """`sandboxes.ports.Worker` in a sandbox."""

    # By the template alone; the worker would count E2B's own programs among the tool's.
    counted = True

    def __init__(self, sdk: Any, sandbox: Any, lease_seconds: int, forget: Callable[["E2bWorker"], None]) -> None:
        self._sdk = sdk
        self._sandbox = sandbox
        self._forget = forget
        self._command: Any = None
        self._pieces = Pieces(_WAITING)
        self._line = ""
        self._complaint = ""
        self._closing: asyncio.Task[None] | None = None
        self._tasks = [asyncio.create_task(self._renew(lease_seconds))]

    async def begin(self, shape: Shape, archive: bytes) -> None:
        """Sends what it needs, and starts it; raises SandboxUnavailable."""
        files: list[dict[str, Any]] = [{"path": f"{HOME}/worker.tar.gz", "data": archive}]
        archives = [{"file": f"{HOME}/worker.tar.gz", "place": HOME}]
        with contextlib.ExitStack() as stack:
            try:
                if shape.layer:
                    layer = await asyncio.to_thread(shape.layer.archive.open, "rb")
                    files.append({"path": f"{HOME}/layer.tar", "data": stack.enter_context(layer)})
                    archives.append({"file": f"{HOME}/layer.tar", "place": LAYER})
                await self._sandbox.files.write_files(files, user="root", use_octet_stream=True)
                self._command = await self._sandbox.commands.run(
                    "exec " + shlex.join(command(shape, archives, text=True)),
                    background=True,
                    user="root",
                    cwd="/",
                    stdin=True,
                    timeout=0,
                    on_stdout=self._take,
                    on_stderr=self._complain,
                    retain_output=False,
                )
            except _failures(self._sdk) as error:
                raise SandboxUnavailable(_sentence(self._sdk, error)) from error
        self._tasks.append(asyncio.create_task(self._watch()))

    async def read(self) -> bytes:
        """See `ports.Worker`."""
        return await self._pieces.next()

    async def write(self, data: bytes) -> None:
        """See `ports.Worker`."""
        for start in range(0, len(data), _PIECE):
            try:
                await self._command.send_stdin(data[start : start + _PIECE])
            except _failures(self._sdk) as error:
                self._complaint = self._complaint or _sentence(self._sdk, error)
                is_last = start + _PIECE >= len(data)
                kind = DeliveryUnknown if is_last and not _is_refusal(self._sdk, error) else ConnectionError
                raise kind(_sentence(self._sdk, error)) from error

    async def problem(self) -> str:
        """See `ports.Worker`."""
        return self._complaint.strip() or "the worker in the sandbox of E2B ended"

    async def ran_out_of_memory(self) -> bool:
        """Returns False: E2B does not say."""
        return False

    async def close(self) -> None:
        """See `ports.Worker`. Where E2B does not answer, its own time limit ends the sandbox."""
        self._closing = self._closing or asyncio.create_task(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await _kill(self._sdk, self._sandbox)
        if self._command:
            await self._command.disconnect()
        self._forget(self)

    async def _take(self, text: str) -> None:
        """Takes a piece; the SDK awaits this, and reads no further meanwhile."""
        *lines, self._line = (self._line + text).split("\n")
        if len(self._line) > _LONGEST_LINE:
            raise ValueError("a line without an end")
        for line in lines:
            await self._pieces.put(base64.b64decode(line, validate=True))

    def _complain(self, text: str) -> None:
        self._complaint = (self._complaint + text)[-_MOST_COMPLAINT:]

    async def _watch(self) -> None:
        """Waits until it has ended, whatever ended it."""
        try:
            await self._command.wait()
        except ValueError:
            self._complaint = "what came from the sandbox of E2B is not the worker's"
        except self._sdk.CommandExitException as error:
            self._complaint = self._complaint or f"the worker ended with exit status {error.exit_code}"
        except _failures(self._sdk) as error:
            self._complaint = _sentence(self._sdk, error)
        # A supervisor: the SDK raises a bare Exception where a stream ends early, and whoever reads must not wait on.
        except Exception as error:  # noqa: BLE001
            self._complaint = f"E2B: {error}"
        await self._pieces.put(b"")

    async def _renew(self, lease_seconds: int) -> None:
        while True:
            await asyncio.sleep(lease_seconds / 3)
            try:
                await self._sandbox.set_timeout(lease_seconds)
            except _failures(self._sdk) as error:
                _log.warning("the time limit of a sandbox was not renewed: %s", _sentence(self._sdk, error))


async def _kill(sdk: Any, sandbox: Any) -> None:
    try:
        await sandbox.kill()
    except _failures(sdk) as error:
        _log.warning("a sandbox could not be killed, E2B's time limit will: %s", _sentence(sdk, error))


def _failures(sdk: Any) -> tuple[type[Exception], ...]:
    """Returns what the SDK raises: its own kinds, which have no common base, its transport's, and the system's."""
    return (sdk.SandboxException, sdk.AuthenticationException, sdk.ServiceBusyException, httpx.HTTPError, OSError)


def _is_refusal(sdk: Any, error: Exception) -> bool:
    """Returns whether E2B itself answered that it did not do what was asked."""
    refusals = (sdk.AuthenticationException, sdk.RateLimitException, sdk.NotFoundException)
    return isinstance(error, (*refusals, sdk.SandboxNotRunningException, httpx.ConnectError))


def _sentence(sdk: Any, error: Exception) -> str:
    match error:
        case sdk.AuthenticationException():
            return f"E2B does not accept E2B_API_KEY: {error}"
        case sdk.RateLimitException():
            return f"E2B starts no more sandboxes for this key just now: {error}"
        case sdk.SandboxNotRunningException():
            return f"E2B has ended the sandbox: {error}"
        case sdk.TemplateException() | sdk.NotFoundException():
            return f"E2B has no such template or sandbox (LOCI_E2B_TEMPLATE): {error}"
    return f"E2B failed: {str(error) or type(error).__name__}"
