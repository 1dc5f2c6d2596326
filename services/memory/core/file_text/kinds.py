"""Kinds of files, known by extension or MIME type, and how a text of each is split."""

import mimetypes
from dataclasses import dataclass
from enum import StrEnum

from services.common.core.refusals import Refused


class FileFormat(StrEnum):
    """The parser that takes the text out."""

    TEXT = "text"
    HTML = "html"
    PDF = "pdf"
    DOCX = "docx"
    XLSX = "xlsx"
    PPTX = "pptx"


class SplitMode(StrEnum):
    """The places where a text may be split into pieces."""

    # Between headings, then paragraphs, then sentences.
    MARKDOWN = "markdown"
    # Between paragraphs, then sentences.
    PROSE = "prose"
    # Between lines only: rows and statements stay whole.
    LINES = "lines"


@dataclass(frozen=True, slots=True)
class FileKind:
    """A kind of file."""

    format: FileFormat
    split_mode: SplitMode
    media_type: str


_OFFICE = "application/vnd.openxmlformats-officedocument"
_DOCUMENTS = {
    "pdf": FileKind(FileFormat.PDF, SplitMode.PROSE, "application/pdf"),
    "docx": FileKind(FileFormat.DOCX, SplitMode.MARKDOWN, f"{_OFFICE}.wordprocessingml.document"),
    "xlsx": FileKind(FileFormat.XLSX, SplitMode.LINES, f"{_OFFICE}.spreadsheetml.sheet"),
    "pptx": FileKind(FileFormat.PPTX, SplitMode.MARKDOWN, f"{_OFFICE}.presentationml.presentation"),
    "html": FileKind(FileFormat.HTML, SplitMode.MARKDOWN, "text/html"),
    "htm": FileKind(FileFormat.HTML, SplitMode.MARKDOWN, "text/html"),
    "xhtml": FileKind(FileFormat.HTML, SplitMode.MARKDOWN, "application/xhtml+xml"),
}
_PROSE = {
    "txt": "text/plain",
    "text": "text/plain",
    "log": "text/plain",
    "rst": "text/x-rst",
    "adoc": "text/asciidoc",
    "org": "text/x-org",
    "tex": "text/x-tex",
    "eml": "message/rfc822",
    "srt": "application/x-subrip",
    "vtt": "text/vtt",
}
_MARKDOWN = dict.fromkeys(("md", "markdown", "mdx"), "text/x-markdown")
_LINES = {
    # Data.
    "csv": "text/csv",
    "tsv": "text/tab-separated-values",
    "json": "application/json",
    "jsonl": "application/jsonl",
    "ndjson": "application/x-ndjson",
    "ipynb": "application/x-ipynb+json",
    "xml": "application/xml",
    "svg": "image/svg+xml",
    "yaml": "text/x-yaml",
    "yml": "text/x-yaml",
    "toml": "application/toml",
    "ini": "text/x-ini",
    "cfg": "text/x-ini",
    "conf": "text/x-conf",
    "env": "text/plain",
    "properties": "text/x-java-properties",
    "ics": "text/calendar",
    "sql": "text/x-sql",
    "proto": "text/x-protobuf",
    "graphql": "text/x-graphql",
    "tf": "text/x-terraform",
    "diff": "text/x-diff",
    "patch": "text/x-diff",
    # Code.
    "py": "text/x-python",
    "pyi": "text/x-python",
    "js": "text/javascript",
    "mjs": "text/javascript",
    "cjs": "text/javascript",
    "jsx": "text/jsx",
    "ts": "text/x-typescript",
    "tsx": "text/x-typescript",
    "java": "text/x-java-source",
    "kt": "text/x-kotlin",
    "kts": "text/x-kotlin",
    "scala": "text/x-scala",
    "groovy": "text/x-groovy",
    "c": "text/x-c",
    "h": "text/x-c",
    "cc": "text/x-c++",
    "cpp": "text/x-c++",
    "cxx": "text/x-c++",
    "hpp": "text/x-c++",
    "cs": "text/x-csharp",
    "go": "text/x-go",
    "rs": "text/x-rust",
    "swift": "text/x-swift",
    "rb": "text/x-ruby",
    "php": "text/x-php",
    "pl": "text/x-perl",
    "lua": "text/x-lua",
    "r": "text/x-r",
    "jl": "text/x-julia",
    "m": "text/x-objective-c",
    "dart": "text/x-dart",
    "ex": "text/x-elixir",
    "exs": "text/x-elixir",
    "erl": "text/x-erlang",
    "hs": "text/x-haskell",
    "ml": "text/x-ocaml",
    "clj": "text/x-clojure",
    "lisp": "text/x-lisp",
    "vue": "text/x-vue",
    "svelte": "text/x-svelte",
    "css": "text/css",
    "scss": "text/x-scss",
    "less": "text/x-less",
    "sh": "text/x-shellscript",
    "bash": "text/x-shellscript",
    "zsh": "text/x-shellscript",
    "fish": "text/x-shellscript",
    "ps1": "text/x-powershell",
    "bat": "text/x-batch",
    "dockerfile": "text/x-dockerfile",
    "makefile": "text/x-makefile",
}
BY_EXTENSION: dict[str, FileKind] = {
    **_DOCUMENTS,
    **{name: FileKind(FileFormat.TEXT, SplitMode.PROSE, media_type) for name, media_type in _PROSE.items()},
    **{name: FileKind(FileFormat.TEXT, SplitMode.MARKDOWN, media_type) for name, media_type in _MARKDOWN.items()},
    **{name: FileKind(FileFormat.TEXT, SplitMode.LINES, media_type) for name, media_type in _LINES.items()},
}
# As clients call some of them otherwise; the first extension with a type stands for it.
_BY_MEDIA_TYPE = {kind.media_type: kind for kind in reversed(BY_EXTENSION.values())} | {
    "application/javascript": BY_EXTENSION["js"],
    "application/x-yaml": BY_EXTENSION["yaml"],
    "application/yaml": BY_EXTENSION["yaml"],
    "text/xml": BY_EXTENSION["xml"],
    "text/markdown": BY_EXTENSION["md"],
    "application/x-sh": BY_EXTENSION["sh"],
    "application/csv": BY_EXTENSION["csv"],
}
PLAIN_TEXT = "text/plain"
_UNKNOWN = FileKind(FileFormat.TEXT, SplitMode.PROSE, PLAIN_TEXT)
_SNIFFED_BYTES = 8_192
# MIME types of bytes that may be anything, of what is no text, and of texts among these.
_ANYTHING = "application/octet-stream"
_NO_TEXT = ("application/", "audio/", "font/", "image/", "model/", "video/")
_TEXTS = ("json", "xml", "yaml", "toml", "script", "sql", "x-sh", "x-csh", "x-tex", "x-latex", "x-python", "x-perl")
_WIDE_MARKS = (b"\xff\xfe", b"\xfe\xff")
# Texts that nobody reads as they are.
_PROGRAMS = (b"{\\rtf", b"%!PS")
_READABLE = "PDF, DOCX, XLSX, PPTX, HTML, Markdown, CSV, JSON, code and other text"


def kind_of(name: str, media_type: str) -> FileKind | None:
    """Returns the kind by the name's extension, else by the MIME type; None where neither tells it."""
    stem, dot, extension = name.lower().rpartition("/")[2].rpartition(".")
    # A name without a dot is a kind by itself: Dockerfile, Makefile.
    known = BY_EXTENSION.get(extension) if dot or not stem else None
    return known or _BY_MEDIA_TYPE.get(media_type.partition(";")[0].strip().lower())


def sniff_kind(name: str, head: bytes, media_type: str = "") -> FileKind:
    """Returns the kind of a file that neither name nor MIME type tells: text, or PDF. `head`: how it begins.

    Raises Refused (FILE_TYPE_UNSUPPORTED) for what is no text, or calls itself something else.
    """
    head = head[:_SNIFFED_BYTES]
    if head.startswith(b"%PDF-"):
        return BY_EXTENSION["pdf"]
    is_binary = head.startswith(_PROGRAMS) or (b"\0" in head and not head.startswith(_WIDE_MARKS))
    if is_binary or _is_called_binary(name, media_type):
        raise Refused("FILE_TYPE_UNSUPPORTED", f"{name!r} is of a type that cannot be read; there is {_READABLE}")
    return _UNKNOWN


def _is_called_binary(name: str, media_type: str) -> bool:
    """Returns whether the name's extension is one of no text; where nobody knows it, whether the client says so."""
    extension = name.lower().rpartition("/")[2].rpartition(".")
    by_name = mimetypes.types_map.get(f".{extension[2]}") if extension[0] else None
    called = by_name or media_type.partition(";")[0].strip().lower()
    if not by_name and called == _ANYTHING:
        return False
    return called.startswith(_NO_TEXT) and not called.endswith(_TEXTS)


def of_media_type(name: str, media_type: str) -> FileKind:
    """Returns the kind of a stored file. A document that is stored as plain text was brought as its text."""
    known = kind_of(name, media_type)
    if known is not None and known.format is not FileFormat.TEXT and media_type.partition(";")[0] == PLAIN_TEXT:
        return FileKind(FileFormat.TEXT, known.split_mode, PLAIN_TEXT)
    return known if known is not None else _UNKNOWN
