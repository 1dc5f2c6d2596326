"""The causes in the last words of a program: what is missing, and which setting gives it. Pure."""

import re
from typing import NamedTuple

_FIRST, _LAST = 300, 600


class _Cause(NamedTuple):
    pattern: re.Pattern[str]
    advice: str  # `{0}` is what the pattern found


def _cause(pattern: str, advice: str) -> _Cause:
    return _Cause(re.compile(pattern, re.IGNORECASE | re.MULTILINE), advice)


_PROGRAMS = (
    "The sandbox has python3, node and the packages of npx and uvx; LOCI_MCP_STDIO_PROGRAMS=true shows it the programs "
    "of this machine (git, sh), and LOCI_MCP_STDIO_PATHS folders with others"
)
# The first that fits is told.
_CAUSES = (
    _cause(
        r"^(\S*/\S+) cannot be started: .*No such file",
        "{0} is not in the sandbox. LOCI_MCP_STDIO_PATHS shows it folders of this machine",
    ),
    _cause(
        r"^(\S+) cannot be started: .*No such file"
        r"|spawn ([^\s/]+) ENOENT|No such file or directory: '([^'/]+)'$|bad (git) executable"
        r"|^sh: \d+: (\S+): not found",
        "there is no program {0}. " + _PROGRAMS,
    ),
    _cause(
        r"Could not locate the bindings file|NODE_MODULE_VERSION|node-gyp",
        "a package of it needs a compiler when it is installed, and Loci runs no install scripts. Install it on this "
        "machine, show its folder (LOCI_MCP_STDIO_PATHS) and name its program there",
    ),
    _cause(
        r"\bEROFS\b|Read-only file system",
        "it wrote to a folder that it may only read. Its own is /work; LOCI_MCP_STDIO_PATHS=/folder:rw makes one "
        "of this machine writable",
    ),
    _cause(
        r"getaddrinfo (?:ENOTFOUND|EAI_AGAIN) (\S+)|could not translate host name \"([^\"]+)\""
        r"|connect ECONNREFUSED (\S+)|[Cc]onnection refused|Temporary failure in name resolution"
        r"|Name or service not known|\bENETUNREACH\b",
        "it did not reach a host {0}. `network` of its config allows hosts over HTTP, and "
        "LOCI_MCP_STDIO_TCP=db.example:5432 databases",
    ),
    _cause(
        r"\bEACCES\b|Permission denied",
        "it may not use a file. Where Loci runs as root, programs run as another user: open the file to others (chmod)",
    ),
    _cause(
        r"No such file or directory|\bENOENT\b|Cannot find module|No module named|does not exist|cannot access"
        r"|(?:directories|paths) are accessible|not a valid git repository|NoSuchPathError",
        "it did not find a file. Of this machine it sees the folders that LOCI_MCP_STDIO_PATHS names, and no others",
    ),
    _cause(
        r"signal SIGKILL|more memory than|heap out of memory",
        "it was killed, most likely for its memory: LOCI_TOOL_MEMORY_MIB is the limit",
    ),
)


def ended_text(errors: str) -> str:
    """Returns the sentence about a program that ended: the cause first, then its own words."""
    words = errors.strip()
    if not words:
        return "the MCP server's program ended without a word"
    return f"the MCP server's program ended: {_advice(words)}its words: {excerpt(words)}"


def excerpt(words: str) -> str:
    """Returns the first and the last lines of many: the cause may be in either."""
    if len(words) <= _FIRST + _LAST:
        return words
    return f"{words[:_FIRST].rstrip()}\n[...]\n{words[-_LAST:].lstrip()}"


def _advice(words: str) -> str:
    for cause in _CAUSES:
        if found := cause.pattern.search(words):
            thing = next(filter(None, found.groups()), "")
            return f"{cause.advice.format(thing[:100])}; "
    return ""
