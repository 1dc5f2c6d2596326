"""Attacks from inside of a process that reads hostile data, as if its parser had been taken over."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from services.common import process_cage

ROOT = Path(__file__).parents[3]
SECRET = "postgresql://role:hush@db/loci"
NOBODY = 65_534
# Where Python is what every user may read.
SYSTEM_PYTHON = "/usr/bin/python3"

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="walls of Linux")

# Each says HELD, or what it got. `parent` is the process that holds the secret.
ATTACKS = {
    "its environment": "len(open(f'/proc/{parent}/environ').read())",
    "its memory": "open(f'/proc/{parent}/mem', 'rb').read(1)",
    "its files": "os.listdir(f'/proc/{parent}/fd')",
    "its folder": "os.listdir(f'/proc/{parent}/cwd')",
    "keys on the disk": "open(key).read()",
    "users of the machine": "open('/etc/passwd').read()",
    "folders of the machine": "os.listdir('/')",
    "a file to write": "open(key + '.new', 'w')",
    "a file to change": "open(key, 'a')",
    "a file to delete": "os.unlink(key)",
    "a port of this machine": "socket.create_connection(('127.0.0.1', port), 5)",
    "a socket in the file system": "socket.socket(socket.AF_UNIX).connect(path)",
    "a datagram": "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', port))",
    "a port of its own": "socket.create_server(('127.0.0.1', 0))",
    "another program": "os.execv('/bin/true', ['true'])",
    "another program beside it": "os.posix_spawn('/bin/true', ['true'], {})",
    "a signal": "os.kill(parent, 0)",
    "a debugger": "trace(parent)",
}
_TRY = """
import ctypes, os, socket, sys
sys.path.insert(0, {root!r})
parent, key, port, path = os.getppid(), {key!r}, {port}, {path!r}

def trace(pid):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.ptrace(16, pid, 0, 0) < 0:
        raise PermissionError(ctypes.get_errno())

{cage}
try:
    print("GOT", {attack})
except OSError as error:
    print("HELD", type(error).__name__)
"""


@pytest.fixture
def world(tmp_path: Path) -> Iterator[dict[str, object]]:
    """A key in a file, a port and a socket of this machine."""
    key, path = tmp_path / "signing-key.pem", tmp_path / "agent.sock"
    key.write_text("hush")
    key.chmod(0o600)
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as local:
        local.bind(str(path))
        local.listen()
        yield {"key": str(key), "path": str(path), "port": server.getsockname()[1], "root": str(ROOT)}


def tried(attack: str, cage: str, world: dict[str, object]) -> str:
    program = _TRY.format(attack=ATTACKS[attack], cage=cage, **world)
    environment = {"LOCI_DATABASE_URL": SECRET}
    return subprocess.run(
        [sys.executable, "-I", "-B", "-c", program],
        capture_output=True,
        text=True,
        timeout=60,
        env=environment,
        check=False,
    ).stdout


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_parser_that_was_taken_over_gets_nothing(attack: str, world: dict[str, object]) -> None:
    if process_cage.landlock_version() < 1:
        pytest.skip("this kernel has no Landlock")
    cage = "from services.common.process_limits import limit_process; limit_process(memory_bytes=2**30)"
    assert tried(attack, cage, world).startswith("HELD")
    assert Path(str(world["key"])).read_text() == "hush"


@pytest.mark.parametrize("attack", ["its environment", "keys on the disk", "a port of this machine", "a signal"])
def test_without_the_cage_it_would(attack: str, world: dict[str, object]) -> None:
    assert tried(attack, "", world).startswith("GOT")


@pytest.mark.skipif(os.getuid() != 0, reason="takes two processes of a user who is not root")
def test_what_a_service_holds_is_hidden_from_others_of_its_user() -> None:
    """Without Landlock, too."""
    looks = "import os; print(open(f'/proc/{os.getppid()}/environ').read())"
    program = (
        "import subprocess, sys\n# hide\n"
        f"print(subprocess.run([sys.executable, '-I', '-c', {looks!r}], capture_output=True, text=True).stdout)"
    )
    shown = {
        hide: subprocess.run(
            [SYSTEM_PYTHON, "-I", "-B", "-c", program.replace("# hide", hide)],
            capture_output=True,
            text=True,
            timeout=60,
            user=NOBODY,
            env={"SECRET": SECRET},
        ).stdout
        for hide in ("", "import ctypes; ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)")
    }
    assert [SECRET in text for text in shown.values()] == [True, False]


def test_services_hide() -> None:
    program = (
        f"import ctypes, sys; sys.path.insert(0, {str(ROOT)!r})\n"
        "from services.common.settings import run_service\n"
        "async def serve(env): print(ctypes.CDLL(None).prctl(3, 0, 0, 0, 0))\n"
        "sys.argv[1:] = []\nrun_service(serve)"
    )
    shown = subprocess.run([sys.executable, "-I", "-B", "-c", program], capture_output=True, text=True, timeout=60)
    assert shown.stdout == "0\n", shown.stderr


# By name: the libraries of some are extras.
CHILDREN = {
    "services.llm_gateway.vendors.local.child",
    "services.llm_gateway.vendors.text.template_child",
    "services.memory.files.parsing.child",
    "services.tool_runner.child_processes.source_parser_child",
    "services.tool_runner.mcp.schema_check_child",
    "services.tool_runner.web.extraction_child",
}


def test_every_child_that_reads_hostile_data_is_in_the_cage() -> None:
    """A new one that starts Python of ours without limits fails here."""
    texts = {
        path.relative_to(ROOT).with_suffix("").as_posix().replace("/", "."): path.read_text()
        for path in (ROOT / "services").rglob("*child*.py")
    }
    assert {name for name, text in texts.items() if "def main()" in text} == CHILDREN
    for name in CHILDREN:
        assert "limit_process(" in texts[name] or "source_parser_child.limit()" in texts[name], name
