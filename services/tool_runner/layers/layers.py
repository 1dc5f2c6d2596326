"""Layers of packages: each made once, in a sandbox that reaches the package index and nothing else."""

import asyncio
import time
from dataclasses import dataclass, field
from typing import BinaryIO

from services.common.core.refusals import Refused
from services.common.errors import FailedPrecondition
from services.tool_runner.core import requirements as needs
from services.tool_runner.core.job import MIB, Job, Language, Layer, SandboxUnavailable
from services.tool_runner.core.model import Tool
from services.tool_runner.core.ports import Ends, Process, Sandbox, Sandboxes
from services.tool_runner.egress.egress import Egress
from services.tool_runner.layers import install_job
from services.tool_runner.layers.archives import BadArchive, TruncatedArchive
from services.tool_runner.layers.cache import LayerCache
from services.tool_runner.layers.causes import failure_text
from services.tool_runner.layers.install_job import LayerSettings

_REMEMBER_FAILURE_SECONDS = 60.0
_REMEMBER_PLACE_SECONDS = 300.0
_LANGUAGES = {"typescript": Language.NODE, "javascript": Language.NODE}
# What compiled packages depend on; asked inside the sandbox, whose image may be built anew under the same name.
_PLACES = {
    Language.PYTHON: "import platform, sys, sysconfig\n"
    "def place():\n    return [sys.implementation.cache_tag, sysconfig.get_platform(), platform.libc_ver()[0]]",
    Language.NODE: "function place() { return [process.versions.modules, process.platform, process.arch] }",
}


@dataclass
class _Known:
    """The layers under way, and recent failures."""

    building: dict[str, asyncio.Task[Layer]] = field(default_factory=dict)
    failures: dict[str, tuple[float, str]] = field(default_factory=dict)
    places: dict[tuple[str, str, Language], tuple[float, str]] = field(default_factory=dict)


class Layers:
    """Finds the layer of a tool, or makes it: whoever else asks for the same meanwhile waits for the same."""

    def __init__(self, settings: LayerSettings, sandboxes: Sandboxes, egress: Egress) -> None:
        self._settings = settings
        self._sandboxes = sandboxes
        self._egress = egress
        self._store = LayerCache(settings.folder, most=settings.most, most_bytes=settings.most_bytes)
        self._known = _Known()

    async def of_tool(self, tool: Tool) -> Layer | None:
        """Returns what its requirements come to; None where it has none.

        Raises FailedPrecondition (REQUIREMENTS_FAILED) and SandboxUnavailable.
        """
        language = _LANGUAGES.get(tool.source_type, Language.PYTHON)
        try:
            requirements = needs.of_tool(tool, language)
        except Refused as refused:
            raise _failure(refused.message) from None
        return await self.of(requirements, language) if requirements else None

    async def of(self, requirements: tuple[str, ...], language: Language) -> Layer:
        """Returns the layer of checked requirements. Raises as `of_tool`."""
        sandbox = await self._sandboxes.get()
        place = await self._place(sandbox, language)
        key = needs.key_of(requirements, language.value, sandbox.name, sandbox.image, place)
        if layer := await asyncio.to_thread(self._store.find, key):
            return layer
        at, words = self._known.failures.get(key, (0.0, ""))
        if words and time.monotonic() - at < _REMEMBER_FAILURE_SECONDS:
            raise _failure(words)
        building = self._known.building.get(key)
        if building is None:
            building = asyncio.create_task(self._build(key, requirements, language, sandbox))
            self._known.building[key] = building
            building.add_done_callback(lambda task: self._over(key, task))
        return await asyncio.shield(building)

    async def close(self) -> None:
        """Ends what is being made."""
        tasks = list(self._known.building.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _over(self, key: str, task: "asyncio.Task[Layer]") -> None:
        del self._known.building[key]
        if not task.cancelled() and isinstance(error := task.exception(), FailedPrecondition):
            now = time.monotonic()
            recent = {k: v for k, v in self._known.failures.items() if now - v[0] < _REMEMBER_FAILURE_SECONDS}
            self._known.failures = {**recent, key: (now, str(error))}

    async def _build(self, key: str, requirements: tuple[str, ...], language: Language, sandbox: Sandbox) -> Layer:
        settings = self._settings
        received = await asyncio.to_thread(self._store.new_file)
        tunnel = install_job.tunnel(settings, self._egress, language)
        process = await sandbox.open(install_job.job(settings, requirements, language), Ends(tunnel=tunnel))
        try:
            async with asyncio.timeout(self._settings.seconds):
                with received.open("wb") as file:
                    await self._receive(process, file)
            return await asyncio.to_thread(self._store.keep, key, received)
        except TimeoutError:
            raise _failure(f"{_names(requirements)}: not installed within {self._settings.seconds:g} s") from None
        except TruncatedArchive as problem:
            raise _failure(f"{_names(requirements)}: {failure_text(process.errors) or problem}") from None
        except BadArchive as problem:
            raise _failure(f"{_names(requirements)}: {problem}") from None
        except OSError as error:
            raise SandboxUnavailable(f"packages cannot be kept (LOCI_LAYER_DIR): {error}") from error
        finally:
            await process.close()
            received.unlink(missing_ok=True)

    async def _receive(self, process: Process, file: BinaryIO) -> None:
        total = 0
        while chunk := await process.read():
            total += len(chunk)
            if total > 2 * self._settings.most_bytes:  # names and padding included
                raise BadArchive(f"the packages have more than {self._settings.most_bytes // MIB} MiB")
            await asyncio.to_thread(file.write, chunk)

    async def _place(self, sandbox: Sandbox, language: Language) -> str:
        where = (sandbox.name, sandbox.image, language)
        at, place = self._known.places.get(where, (0.0, ""))
        if not place or time.monotonic() - at > _REMEMBER_PLACE_SECONDS:
            result = await sandbox.run(Job(_PLACES[language], "place", {}, language=language))
            if result.result is None:
                problem = result.error.message if result.error else "no answer"
                raise SandboxUnavailable(f"the sandbox does not say what it runs: {problem}")
            place = result.result
            self._known.places[where] = (time.monotonic(), place)
        return place


def _names(requirements: tuple[str, ...]) -> str:
    return ", ".join(requirements)[:300]


def _failure(words: str) -> FailedPrecondition:
    return FailedPrecondition(f"the tool's packages cannot be installed: {words}", reason="REQUIREMENTS_FAILED")
