"""What few processes need, imported when it is first asked for: an idle server does without its memory."""

import asyncio
import importlib
import sys
from typing import Any


async def imported(name: str) -> Any:
    """The module; the first time beside the event loop, since it may take most of a second. Raises ImportError."""
    return sys.modules.get(name) or await asyncio.to_thread(importlib.import_module, name)
