"""The limited child in which a file is parsed: it holds nothing, may use little, and a crash ends it alone.

Stdin: a line of JSON (`format`, `split_mode`), then the bytes of the file. Stdout, lines of JSON: one per page, with
the fields of `TextPage`; then one with those of `ParseSummary`, or with `error`, a sentence.
"""

import contextlib
import importlib
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from services.common.process_limits import limit_process
from services.memory.core.file_text.kinds import FileFormat, SplitMode
from services.memory.core.file_text.pages import LONGEST_TEXT, pages_of, storable
from services.memory.files.parsing.splitting import cuts
from services.memory.files.parsing.text import assumed_charset
from services.memory.files.parsing.unreadable import Unreadable

CPU_SECONDS = 60
MEMORY_BYTES = 768 * 1024 * 1024


def _limit() -> None:
    # Whoever is served comes first; and where memory is short, this process is the one to go.
    os.nice(5)
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")
    limit_process(memory_bytes=MEMORY_BYTES, cpu_seconds=CPU_SECONDS, open_files=64)


def text_of(kind: FileFormat, data: bytes) -> tuple[str, str]:
    """Returns the text of a file and, apart from it, its blank end.

    Raises Unreadable, and whatever a library makes of a file that is broken.
    """
    parts, size = [], 0
    # Each library is large; a child needs one.
    for part in importlib.import_module(f"services.memory.files.parsing.{kind}").read(data):
        parts.append(part)
        size += len(part)
        if size > LONGEST_TEXT:
            raise Unreadable(f"it has more than {LONGEST_TEXT:,} characters of text; split it")
    return storable("".join(parts))


def answer(kind: FileFormat, split_mode: SplitMode, data: bytes) -> Iterator[dict[str, Any]]:
    """Returns the lines of the answer."""
    text, ending = text_of(kind, data)
    # Of a document it is only what the conversion left.
    ending = ending if kind is FileFormat.TEXT else ""
    pages, line, place = 0, 0, 0
    for page in pages_of(text):
        pieces = cuts(page.text, split_mode)
        yield {
            "page": page.page,
            "first_line": page.first_line,
            "last_line": page.last_line,
            "continued": page.continued,
            "first_place": place,
            "cuts": pieces,
            "text": page.text,
        }
        pages, line, place = pages + 1, page.last_line, place + len(pieces)
    charset = assumed_charset(data) if kind in (FileFormat.TEXT, FileFormat.HTML) else ""
    yield {
        "pages": pages,
        "lines": line,
        "characters": len(text),
        "chunks": place,
        "ending": ending,
        "charset": charset,
    }


def main() -> None:
    """Reads the file and writes the answer."""
    _limit()
    header = json.loads(sys.stdin.buffer.readline())
    kind, split_mode = FileFormat(header["format"]), SplitMode(header["split_mode"])
    try:
        for line in answer(kind, split_mode, sys.stdin.buffer.read()):
            sys.stdout.write(json.dumps(line) + "\n")
    except Unreadable as error:
        _fail(str(error))
    except MemoryError:
        _fail("it needs too much memory to be read")
    except Exception as error:  # noqa: BLE001 - a supervisor: libraries raise anything over a broken file
        _fail(f"it is damaged, or not a {kind.upper()} file ({type(error).__name__})")


def _fail(sentence: str) -> None:
    sys.stdout.write(json.dumps({"error": sentence}) + "\n")


if __name__ == "__main__":
    main()
