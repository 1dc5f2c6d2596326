"""Workers in sandboxes of Modal (modal.com): one container under gVisor each.

What it promises: each call (or session) in a sandbox of its own, without network, with the call's limits of memory and
processors as Modal's hard ones, where the worker and the tool are nobody and what was sent is not theirs to change;
ended after the call, and by Modal itself at the end of its lifetime where this process died.
What it does not: the isolation is Modal's, and no seccomp rules of ours hold; its disk has no quota but Modal's; a tool
that uses too much memory is told to have been killed. What a call is given and gives passes through Modal.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import Any

from services.tool_runner.core.job import MIB, SandboxUnavailable
from services.tool_runner.sandboxes.hosted.create import create_or_undo
from services.tool_runner.sandboxes.hosted.parcel import HOME, LAYER, command, worker_archive
from services.tool_runner.sandboxes.hosted.pieces import Pieces
from services.tool_runner.sandboxes.hosted.sdk import import_sdk
from services.tool_runner.sandboxes.ports import DeliveryUnknown, Shape
from services.tool_runner.sandboxes.remote_settings import ModalSettings

_MAKE_SECONDS = 120.0  # an image that Modal has not built yet takes longer: then the next call may find it
_REQUEST_SECONDS = 60.0
_PIECE = MIB  # of input in one request
_WAITING = 64  # pieces of output; then Modal has to wait
_OWN_MEMORY_MIB = 64  # of the worker itself, beside the tool's
_MOST_COMPLAINT = 4000
_log = logging.getLogger(__name__)


class ModalSource:
    """`sandboxes.ports.WorkerSource`."""

    name = "modal"

    def __init__(self, settings: ModalSettings) -> None:
        self.image = settings.image
        self._settings = settings
        self._client: Any = None
        self._opening = asyncio.Lock()
        self._workers: set[ModalWorker] = set()

    async def start(self, shape: Shape, tenant: str) -> "ModalWorker":
        """See `ports.WorkerSource`. Nothing is of a tenant."""
        sdk = await import_sdk("modal")
        archive = await asyncio.to_thread(worker_archive, shape.language)
        sandbox = await create_or_undo(self._create(sdk, shape), lambda sandbox: _terminate(sdk, sandbox))
        worker = ModalWorker(sdk, sandbox, self._workers.discard)
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
        client, self._client = self._client, None
        if client:
            await client.close.aio()

    async def _create(self, sdk: Any, shape: Shape) -> Any:
        settings = self._settings
        memory = shape.memory // MIB + _OWN_MEMORY_MIB
        by_id = settings.image.startswith("im-")
        try:
            async with asyncio.timeout(_MAKE_SECONDS):
                client = await self._open_client(sdk)
                app = await sdk.App.lookup.aio(settings.app, client=client, create_if_missing=True)
                image = (
                    sdk.Image.from_id(settings.image, client=client)
                    if by_id
                    else sdk.Image.from_registry(settings.image)
                )
                return await sdk.Sandbox.create.aio(
                    app=app,
                    image=image,
                    client=client,
                    timeout=settings.lifetime,
                    cpu=(shape.cpus, shape.cpus),
                    memory=(memory, memory),
                    block_network=True,
                    tags={"app": "loci", "part": "tool_runner"},
                )
        except _failures(sdk) as error:
            raise SandboxUnavailable(_sentence(sdk, error)) from error

    async def _open_client(self, sdk: Any) -> Any:
        async with self._opening:
            if self._client is None:
                settings = self._settings
                self._client = await sdk.Client.from_credentials.aio(settings.token_id, settings.token_secret)
            return self._client


class ModalWorker:
    """`sandboxes.ports.Worker` in a sandbox: a process there whose streams Modal relays as bytes."""

    counted = True

    def __init__(self, sdk: Any, sandbox: Any, forget: Callable[["ModalWorker"], None]) -> None:
        self._sdk = sdk
        self._sandbox = sandbox
        self._forget = forget
        self._process: Any = None
        self._pieces = Pieces(_WAITING)
        self._complaint = ""
        self._ended = asyncio.Event()
        self._closing: asyncio.Task[None] | None = None
        self._tasks: list[asyncio.Task[None]] = []

    async def begin(self, shape: Shape, archive: bytes) -> None:
        """Starts it, and sends what it needs; raises SandboxUnavailable."""
        archives: list[dict[str, Any]] = [{"size": len(archive), "place": HOME}]
        if shape.layer:
            size = (await asyncio.to_thread(shape.layer.archive.stat)).st_size
            archives.append({"size": size, "place": LAYER})
        try:
            async with asyncio.timeout(_REQUEST_SECONDS):
                argv = command(shape, archives, text=False)
                self._process = await self._sandbox.exec.aio(*argv, text=False, workdir="/")
            for work in (self._take(), self._listen(), self._watch()):
                self._tasks.append(asyncio.create_task(work))
            await self.write(archive)
            if shape.layer:
                with await asyncio.to_thread(shape.layer.archive.open, "rb") as layer:
                    while piece := await asyncio.to_thread(layer.read, _PIECE):
                        await self.write(piece)
        except _failures(self._sdk) as error:
            raise SandboxUnavailable(self._complaint.strip() or _sentence(self._sdk, error)) from error

    async def read(self) -> bytes:
        """See `ports.Worker`."""
        return await self._pieces.next()

    async def write(self, data: bytes) -> None:
        """See `ports.Worker`."""
        for start in range(0, len(data), _PIECE):
            if self._ended.is_set():
                raise ConnectionError(await self.problem())
            try:
                self._process.stdin.write(data[start : start + _PIECE])
                await self._process.stdin.drain.aio()
            except _failures(self._sdk) as error:
                is_last = start + _PIECE >= len(data)
                kind = DeliveryUnknown if is_last and not _is_refusal(self._sdk, error) else ConnectionError
                raise kind(_sentence(self._sdk, error)) from error

    async def problem(self) -> str:
        """See `ports.Worker`."""
        return self._complaint.strip() or "the worker in the sandbox of Modal ended"

    async def ran_out_of_memory(self) -> bool:
        """Returns False: Modal does not say in time."""
        return False

    async def close(self) -> None:
        """See `ports.Worker`. Where Modal does not answer, its own time limit ends the sandbox."""
        self._closing = self._closing or asyncio.create_task(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        await _terminate(self._sdk, self._sandbox)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        with contextlib.suppress(*_failures(self._sdk)):
            await self._sandbox.detach.aio()
        self._forget(self)

    async def _take(self) -> None:
        try:
            async for piece in self._process.stdout:
                if piece:
                    await self._pieces.put(piece)
        except _failures(self._sdk) as error:
            self._complaint = self._complaint or _sentence(self._sdk, error)
        await self._end()

    async def _listen(self) -> None:
        """Reads its stderr."""
        with contextlib.suppress(*_failures(self._sdk)):
            async for piece in self._process.stderr:
                text = piece.decode("utf-8", "replace")
                self._complaint = (self._complaint + text)[-_MOST_COMPLAINT:]

    async def _watch(self) -> None:
        """Watches the sandbox itself: its streams are tried anew for a while when it is gone."""
        try:
            await self._sandbox.wait.aio(raise_on_termination=False)
            self._complaint = self._complaint or "Modal has ended the sandbox"
        except self._sdk.exception.SandboxTimeoutError:
            self._complaint = self._complaint or "Modal has ended the sandbox: its lifetime was over"
        except _failures(self._sdk) as error:
            self._complaint = self._complaint or _sentence(self._sdk, error)
        await self._end()

    async def _end(self) -> None:
        if not self._ended.is_set():
            self._ended.set()
            await self._pieces.put(b"")


async def _terminate(sdk: Any, sandbox: Any) -> None:
    try:
        async with asyncio.timeout(_REQUEST_SECONDS):
            await sandbox.terminate.aio()
    except _failures(sdk) as error:
        _log.warning("a sandbox could not be ended, Modal's time limit will: %s", _sentence(sdk, error))


def _failures(sdk: Any) -> tuple[type[Exception], ...]:
    return (sdk.exception.Error, OSError)


def _is_refusal(sdk: Any, error: Exception) -> bool:
    """Returns whether Modal itself answered that it did not do what was asked."""
    kinds = sdk.exception
    refusals = (kinds.AuthError, kinds.PermissionDeniedError, kinds.ResourceExhaustedError, kinds.NotFoundError)
    return isinstance(error, refusals)


def _sentence(sdk: Any, error: Exception) -> str:
    kinds = sdk.exception
    match error:
        case kinds.AuthError() | kinds.PermissionDeniedError():
            return f"Modal does not accept MODAL_TOKEN_ID and MODAL_TOKEN_SECRET: {error}"
        case kinds.ResourceExhaustedError():
            return f"Modal starts no more sandboxes for this account just now: {error}"
        case kinds.ImageBuildError():
            return f"Modal could not make the image of LOCI_MODAL_IMAGE: {error}"
    return f"Modal failed: {str(error) or type(error).__name__}"
