"""Packages that a new tool imports and that its sandbox does not have: said when it is made, not at its first call.

A warning, not a refusal: an import may stand in a function that is never reached, or behind a `try`.
"""

import json
import time
from uuid import UUID

from services.common.errors import LociError
from services.tool_runner.core.job import Job, Limits, SandboxUnavailable
from services.tool_runner.core.model import Tool
from services.tool_runner.core.ports import Environments, Sandbox, Sandboxes
from services.tool_runner.core.schemas.derive import SCRIPTS
from services.tool_runner.core.schemas.imports import foreign_modules
from services.tool_runner.tools import rules

_LOOK = """
def missing(names):
    import importlib.util
    return [name for name in names if importlib.util.find_spec(name) is None]
"""
_LIMITS = Limits(seconds=10.0)
_REMEMBER_SECONDS = 300.0


class MissingPackages:
    """Asks the sandbox, for tools with imports and without requirements; it looks for modules, and loads none."""

    def __init__(self, sandboxes: Sandboxes, environments: Environments) -> None:
        self._sandboxes = sandboxes
        self._environments = environments
        self._known: dict[tuple[str, str, tuple[str, ...]], tuple[float, frozenset[str]]] = {}

    async def warnings(self, organization_id: UUID, tool: Tool) -> list[str]:
        """Returns a sentence for each package; none where the sandbox cannot be asked."""
        if not rules.is_own(tool) or tool.source_type in SCRIPTS or tool.pip_requirements:
            return []
        if not (modules := foreign_modules(tool.source_code)):
            return []
        try:
            common = await self._environments.of_call(organization_id, tool.id, None)
            if common.pip_requirements:
                return []
            sandbox = await self._sandboxes.get()
            missing = await self._missing(sandbox, modules, str(organization_id))
        except (SandboxUnavailable, LociError):
            return []
        return [_sentence(name, sandbox.name) for name in modules if name in missing]

    async def _missing(self, sandbox: Sandbox, modules: tuple[str, ...], tenant: str) -> frozenset[str]:
        """Returns those that are not there; asked once for each sandbox and some minutes, as tools come in numbers."""
        key, now = (sandbox.name, sandbox.image, modules), time.monotonic()
        until, missing = self._known.get(key, (0.0, frozenset[str]()))
        if until < now:
            ran = await sandbox.run(Job(_LOOK, "missing", {"names": list(modules)}, limits=_LIMITS, tenant=tenant))
            missing = frozenset(json.loads(ran.result or "[]"))
            self._known = {each: entry for each, entry in self._known.items() if entry[0] >= now}
            self._known[key] = (now + _REMEMBER_SECONDS, missing)
        return missing


def _sentence(module: str, sandbox: str) -> str:
    return (
        f"the source imports {module}, which the sandbox ({sandbox}) does not have: "
        f"name its package in pip_requirements, or calls that need it fail"
    )
