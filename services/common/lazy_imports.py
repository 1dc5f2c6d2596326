"""Modules that few processes need, imported with the first use: an idle server does without their memory."""

import asyncio
import importlib
from typing import Any


async def import_lazily(name: str) -> Any:
    """Returns the module; beside the event loop, since the first time may take most of a second. Raises ImportError."""
    # Not by a look into sys.modules: what another thread is still importing is there already, in part.
    return await asyncio.to_thread(importlib.import_module, name)
