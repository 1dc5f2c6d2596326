"""Packages that a new tool imports and that its sandbox does not have: said when it is made, not at its first call.

A warning, not a refusal: an import may stand in a function that is never reached, or behind a `try`.
"""

import json
from uuid import UUID

from services.common.errors import LociError
from services.tool_runner.core.job import Job, Limits, SandboxUnavailable
from services.tool_runner.core.model import Tool
from services.tool_runner.core.ports import Environments, Sandboxes
from services.tool_runner.core.schemas.derive import SCRIPTS
from services.tool_runner.core.schemas.imports import foreign_modules
from services.tool_runner.tools import rules

_LOOK = """
def missing(names):
    import importlib.util
    return [name for name in names if importlib.util.find_spec(name) is None]
"""
_LIMITS = Limits(seconds=10.0)


class MissingPackages:
    """Asks the sandbox, for tools with imports and without requirements; it looks for modules, and loads none."""

    def __init__(self, sandboxes: Sandboxes, environments: Environments) -> None:
        self._sandboxes = sandboxes
        self._environments = environments

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
            job = Job(_LOOK, "missing", {"names": list(modules)}, limits=_LIMITS, tenant=str(organization_id))
            found = (await sandbox.run(job)).result
        except (SandboxUnavailable, LociError):
            return []
        return [_sentence(name, sandbox.name) for name in json.loads(found or "[]")]


def _sentence(module: str, sandbox: str) -> str:
    return (
        f"the source imports {module}, which the sandbox ({sandbox}) does not have: "
        f"name its package in pip_requirements, or calls that need it fail"
    )
