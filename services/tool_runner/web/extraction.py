"""The readable part of a page, found in a limited child: pages are hostile, and parsers of them are large."""

import asyncio
import json

from services.tool_runner.child_processes.run import ask
from services.tool_runner.web.errors import WebError

_CHILD = "services.tool_runner.web.extraction_child"
_WALL_SECONDS = 20.0
_slots = asyncio.Semaphore(2)


async def extract(html: str, url: str) -> tuple[str, str]:
    """Returns title and Markdown; raises WebError where nothing can be read within the limits."""
    request = json.dumps({"html": html, "url": url}).encode()
    async with _slots:
        answer = await ask(_CHILD, request, _WALL_SECONDS)
    if not answer:
        raise WebError(f"{url[:200]} needs too much time or memory to read")
    fields = json.loads(answer)
    if not fields["text"].strip():
        raise WebError(f"{url[:200]} holds no text that could be read; it may need a browser")
    return fields["title"], fields["text"]
