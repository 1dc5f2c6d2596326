"""The limited child that reads a page: JSON {html, url} in, {title, text} out. It holds nothing and may use little."""

import json
import re
import sys
from html import unescape

import trafilatura

from services.common.process_limits import limit_process

_CPU_SECONDS = 15
_MEMORY_BYTES = 1024 * 1024 * 1024
_TITLE = re.compile(r"<title[^>]{0,200}>([^<]{1,1000})", re.IGNORECASE)
_START_CHARS = 100_000


def read(html: str, url: str) -> dict[str, str]:
    """Returns title and main content as Markdown; the whole text where no main content is found."""
    text = trafilatura.extract(
        html, url=url, output_format="markdown", include_links=True, include_tables=True, favor_recall=True
    )
    if not text:
        text = trafilatura.html2txt(html)
    title = _TITLE.search(html[:_START_CHARS])
    return {"title": " ".join(unescape(title[1]).split()) if title else "", "text": text or ""}


def main() -> None:
    """Reads, answers."""
    limit_process(memory_bytes=_MEMORY_BYTES, cpu_seconds=_CPU_SECONDS)
    request = json.loads(sys.stdin.buffer.read())
    sys.stdout.write(json.dumps(read(**request)))


if __name__ == "__main__":
    main()
