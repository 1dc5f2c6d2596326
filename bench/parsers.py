"""`make bench ARGS=parsers`: CPU seconds of the worst request that each parser of a client's bytes accepts or refuses.

What is parsed in a process of its own ends at that process's limit, and is measured with it. Each body is as large as
it may be; where several are bad in different ways, the worst one counts.
"""

import argparse
import asyncio
import gzip
import hashlib
import io
import resource
import struct
import sys
import zipfile
import zlib
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from dulwich.objects import Blob, Commit, Tree

from bench.common import Report
from gateway.agent_files import reader
from gateway.git import packs, requests
from gateway.rest import json_body
from services.llm_gateway.core.sse import SseParser
from services.llm_gateway.vendors.text.templates import TemplateChild
from services.memory.adapters.parser import ChildParser
from services.memory.core.file_text.kinds import FileFormat, FileKind, SplitMode
from services.tool_runner.child_processes.source_parser import SourceParser
from services.tool_runner.web.extraction import extract

MIB = 1024 * 1024
BODY = 32 * MIB


def spent() -> float:
    """Returns the CPU seconds of this process and of those that it waited for."""
    used = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)


def filled(start: bytes, piece: bytes, end: bytes, size: int = BODY) -> bytes:
    """Returns `start`, as many pieces as there is room for, and `end`."""
    return start + piece * ((size - len(start) - len(end)) // len(piece)) + end


def json_bodies() -> Iterator[bytes]:
    """Bodies of REST at their largest."""
    yield filled(b'{"a":[[]', b",[]", b"]}")
    yield filled(b'{"a":[{"\\u0022":1}', b',{"\\u0022":1}', b"]}")
    yield filled(b'{"a":"', b"\\ud800", b'"}')
    yield filled(b'{"a":[1', b",1", b"]}")
    yield filled(b'{"a":"\\u0000', b"x", b'"}')
    yield b"{" + b",".join(b'"%x":0' % number for number in range(2_700_000)) + b"}"


def agent_files() -> Iterator[bytes]:
    """Agent files at their largest."""
    yield filled(b'{"agents":[{}', b",{}", b"]}")
    yield filled(
        b'{"agents":[],"blocks":[{"id":"b","value":"","label":"x"}', b',{"id":"b","value":"","label":"x"}', b"]}"
    )
    text = filled(b'{"agents":[', b"1,", b"1]}", BODY // 4).decode()
    yield text.encode()


def _pack(*entries: bytes) -> bytes:
    body = b"PACK" + struct.pack(">LL", 2, len(entries)) + b"".join(entries)
    return body + hashlib.sha1(body, usedforsecurity=False).digest()


def _head(kind: int, size: int) -> bytes:
    first, size = kind << 4 | size & 15, size >> 4
    head = bytearray()
    while size:
        head.append(first | 0x80)
        first, size = size & 0x7F, size >> 7
    head.append(first)
    return bytes(head)


def _number(value: int) -> bytes:
    digits = bytearray()
    while value > 0x7F:
        digits.append(value & 0x7F | 0x80)
        value >>= 7
    digits.append(value)
    return bytes(digits)


def git_packs() -> Iterator[bytes]:
    """Packs at their largest: many small steps of a delta, and a tree of very many entries."""
    base = b"x"
    steps = 20 * MIB
    delta = _number(len(base)) + _number(steps) + b"\x01y" * steps
    blob = _head(3, len(base)) + zlib.compress(base)
    reference = Blob.from_string(base).sha().digest()
    yield _pack(blob, _head(7, len(delta)) + reference + zlib.compress(delta))
    tree = b"".join(b"100644 %06x\x00" % number + b"\1" * 20 for number in range(1_900_000))
    yield _pack(_head(Tree.type_num, len(tree)) + zlib.compress(tree))
    commit = b"tree " + b"0" * 40 + b"\n" + b"parent " + b"\nparent ".join([b"0" * 40] * 1_200_000) + b"\n"
    commit += b"author a <a@b> 0 +0000\ncommitter a <a@b> 0 +0000\n\nx"
    yield _pack(_head(Commit.type_num, len(commit)) + zlib.compress(commit))


def gzip_bodies() -> Iterator[bytes]:
    """A body that is larger than it says."""
    yield gzip.compress(bytes(BODY))


def event_streams() -> Iterator[bytes]:
    """16 MiB of events of a provider or an MCP server."""
    yield filled(b"", b"data:\n", b"\n", 16 * MIB)
    yield filled(b"", b"data:x\r\n\r\n", b"", 16 * MIB)
    yield filled(b"", b"\n", b"", 16 * MIB)


def _zip(name: str, start: bytes, piece: bytes, end: bytes, size: int) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", b"<Types/>")
        archive.writestr(name, filled(start, piece, end, size))
    return made.getvalue()


def word_files() -> Iterator[bytes]:
    """Documents of very many paragraphs, packed."""
    start = b'<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body>'
    paragraph = b"<w:p><w:r><w:t>a</w:t></w:r></w:p>"
    yield _zip("word/document.xml", start, paragraph, b"</w:body></w:document>", 90 * MIB)


def web_files() -> Iterator[bytes]:
    """Pages that nest, and pages that do not."""
    yield filled(b"<html><body>", b"<div><p>a", b"", 8 * MIB)
    yield filled(b"<html><body>", b"<p>a</p>", b"", 8 * MIB)


def pdf_files() -> Iterator[bytes]:
    content = zlib.compress(b"BT /F1 1 Tf (a) Tj ET\n" * 3_000_000)
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Count 1/Kids[3 0 R]>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]/Contents 4 0 R"
        b"/Resources<</Font<</F1<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>>>>>>>",
        b"<</Filter/FlateDecode/Length %d>>stream\n" % len(content) + content + b"\nendstream",
    ]
    made, places = bytearray(b"%PDF-1.4\n"), []
    for number, each in enumerate(objects, 1):
        places.append(len(made))
        made += b"%d 0 obj" % number + each + b"endobj\n"
    start = len(made)
    made += b"xref\n0 5\n0000000000 65535 f \n" + b"".join(b"%010d 00000 n \n" % place for place in places)
    yield bytes(made + b"trailer<</Size 5/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF" % start)


def _parsed(format: FileFormat) -> Callable[[bytes], None]:
    return lambda data: asyncio.run(_parse(FileKind(format, SplitMode.PROSE, ""), data))


async def _parse(kind: FileKind, data: bytes) -> None:
    async def parts() -> AsyncIterator[bytes]:
        for start in range(0, len(data), 65_536):
            yield data[start : start + 65_536]

    async for _ in ChildParser().parse(kind, parts()):
        pass


def _streamed(stream: bytes) -> None:
    parser = SseParser()
    for start in range(0, len(stream), 65_536):
        parser.feed(stream[start : start + 65_536])


async def _rendered() -> None:
    child = TemplateChild()
    try:
        await child.render("{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}", {})
    finally:
        await child.close()


async def _validated() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "pattern": "^(a+)+$"}}}
    await SourceParser().problems("f", schema, {"a": "a" * 60 + "!"})


async def _extracted() -> None:
    await extract(filled(b"<html><body>", b"<div><p>a", b"", 4 * MIB).decode(), "https://example.com")


def worst(parse: Callable[[bytes], Any], bodies: Callable[[], Iterator[bytes]]) -> Callable[[], float]:
    """Returns what measures a parser with each of the bodies."""
    return lambda: max(_seconds(partial(parse, body)) for body in bodies())


def alone(work: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], float]:
    """Returns what measures something that needs no body."""
    return lambda: _seconds(lambda: asyncio.run(work()))


def _seconds(work: Callable[[], Any]) -> float:
    before = spent()
    # What is refused has cost as much.
    with suppress(Exception):
        work()
    return spent() - before


MEASURES: Mapping[str, Callable[[], float]] = {
    "JSON body, 32 MiB": worst(json_body.parse, json_bodies),
    "agent file, 32 MiB": worst(reader.read, agent_files),
    "push of git, packed": worst(
        lambda body: requests.unpacked(body, "gzip"), lambda: iter([gzip.compress(bytes(BODY))])
    ),
    "push of git, 16 MiB": worst(lambda pack: packs.read(pack, {}), git_packs),
    "events of a stream, 16 MiB": worst(_streamed, event_streams),
    "PDF": worst(_parsed(FileFormat.PDF), pdf_files),
    "Word": worst(_parsed(FileFormat.DOCX), word_files),
    "HTML": worst(_parsed(FileFormat.HTML), web_files),
    "web page that is fetched": alone(_extracted),
    "template without end": alone(_rendered),
    "arguments against a pattern": alone(_validated),
}


def main(arguments: list[str]) -> None:
    """Measures, prints."""
    parser = argparse.ArgumentParser(prog="bench parsers", description=__doc__)
    parser.add_argument("--only", default="", help="a part of a name")
    only = parser.parse_args(arguments).only
    report = Report()
    for name, measure in MEASURES.items():
        if only in name:
            report.add(f"{name}, CPU s", measure())
    sys.stdout.flush()
