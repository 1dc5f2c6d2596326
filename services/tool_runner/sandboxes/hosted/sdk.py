"""The vendors' SDKs, which few need: imported on first use."""

from typing import Any

from services.common import lazy_imports
from services.tool_runner.core.job import SandboxUnavailable


async def import_sdk(name: str) -> Any:
    """Returns the package; raises SandboxUnavailable with the command that installs it."""
    try:
        return await lazy_imports.import_lazily(name)
    except ImportError as error:
        problem = f"LOCI_SANDBOX is {name}, whose SDK cannot be imported ({error}): run `make setup EXTRAS={name}`"
        raise SandboxUnavailable(problem) from error
