"""The first line about a program that ended says what is missing, and which setting gives it."""

import pytest

from services.tool_runner.mcp.protocol.last_words import ended_text, excerpt


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("docker cannot be started: No such file or directory", "no program docker. The sandbox has python3, node"),
        ("/opt/x/server cannot be started: No such file or directory", "/opt/x/server is not in the sandbox. LOCI_MCP"),
        ("Error: spawn git ENOENT\n    at ChildProcess", "no program git. The sandbox has"),
        ("FileNotFoundError: [Errno 2] No such file or directory: 'ls'", "no program ls. "),
        ("ImportError: Bad git executable.\nThe git executable must be", "no program git. "),
        ("Error: ENOENT: no such file or directory, stat '/data'", "LOCI_MCP_STDIO_PATHS names"),
        (
            "can't open file '/srv/server.py': [Errno 2] No such file or directory",
            "LOCI_MCP_STDIO_PATHS names",
        ),
        ("Error: None of the specified directories are accessible", "LOCI_MCP_STDIO_PATHS names"),
        ("ERROR /home/me/project is not a valid Git repository", "LOCI_MCP_STDIO_PATHS names"),
        ("Error: EROFS: read-only file system, open '/opt/x'", "LOCI_MCP_STDIO_PATHS=/folder:rw"),
        ("Error: Could not locate the bindings file. Tried:", "needs a compiler"),
        ("the program ended by signal SIGKILL", "LOCI_TOOL_MEMORY_MIB"),
    ],
)
def test_the_cause_comes_first(words: str, says: str) -> None:
    text = ended_text(words)
    assert text.startswith("the MCP server's program ended: ")
    assert says in text.splitlines()[0]
    assert words in text


def test_other_words_stand_for_themselves() -> None:
    assert ended_text("no such luck") == "the MCP server's program ended: its words: no such luck"
    assert ended_text(" \n") == "the MCP server's program ended without a word"


def test_of_many_words_the_first_and_the_last_are_kept() -> None:
    words = "the cause\n" + "a frame\n" * 500 + "the end"
    kept = excerpt(words)
    assert len(kept) < 1_000
    assert kept.startswith("the cause\n")
    assert kept.endswith("the end")
