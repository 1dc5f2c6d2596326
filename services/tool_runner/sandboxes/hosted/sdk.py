"""The vendors' SDKs, which few need: imported on first use."""

import asyncio
import importlib
from typing import Any

from services.tool_runner.job import SandboxUnavailable


async def imported(name: str) -> Any:
    """The package; raises SandboxUnavailable with the command that installs it."""
    try:
        return await asyncio.to_thread(importlib.import_module, name)
    except ImportError as error:
        wanted = f"LOCI_SANDBOX is {name}, whose SDK cannot be imported ({error}): pip install 'loci[{name}]'"
        raise SandboxUnavailable(wanted) from error
