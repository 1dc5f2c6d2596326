"""The command line of bubblewrap, control groups, and the worker's own needs."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from services.tool_runner.core.job import Job, Language, Limits
from services.tool_runner.sandboxes.bubblewrap import node_runtime
from services.tool_runner.sandboxes.bubblewrap.cgroups import find_cgroups
from services.tool_runner.sandboxes.bubblewrap.node_runtime import NodeRuntime
from services.tool_runner.sandboxes.bubblewrap.orphans import end_orphans, mark_of_this_process
from services.tool_runner.sandboxes.bubblewrap.packages import Packages
from services.tool_runner.sandboxes.bubblewrap.python_runtime import PythonRuntime
from services.tool_runner.sandboxes.bubblewrap.spec import command
from services.tool_runner.sandboxes.ports import shape_of
from services.tool_runner.sandboxes.worker_files import worker_files


def test_the_command_line_of_bubblewrap() -> None:
    python = PythonRuntime("/usr/bin/python3.11", ("/usr/lib/python3.11",), (("usr/lib", "/lib"),))
    node = NodeRuntime("/usr/bin/node", "/srv/node")
    shape = shape_of(Job("", "", {}, limits=Limits(disk=7), language=Language.NODE))
    argv = command(
        "/usr/bin/bwrap",
        shape,
        60_721,
        python=python,
        packages=Packages((("pydantic", "/venv/pydantic"),)),
        node=node,
        layer=Path("/layers/a"),
        files={"worker/keeper.py": 6},
        etc={"hosts": 9},
        seccomp=5,
        info=7,
        block=8,
        mark="loci-owner:me",
    )
    text = " ".join(argv)
    assert "--unshare-all --unshare-user" in text
    assert "--ro-bind /usr/lib/python3.11 /usr/lib/python3.11" in text
    assert "--ro-bind /srv/node /opt/loci/node" in text
    assert "--ro-bind /venv/pydantic /opt/loci/packages/pydantic" in text
    assert "--ro-bind /layers/a /opt/loci/layer" in text
    assert "--ro-bind-data 6 /opt/loci/worker/keeper.py --ro-bind-data 9 /etc/hosts" in text
    assert "--size 7 --tmpfs /work" in text
    assert "--die-with-parent" in argv
    assert "--unsetenv loci-owner:me" in text
    assert not {"--bind", "--dev-bind", "--share-net"} & set(argv)
    assert argv[argv.index("/usr/bin/python3.11", -8) :][:4] == ["/usr/bin/python3.11", "-I", "-S", "/opt/loci/worker"]
    assert argv[-4:] == ["--language", "node", "--memory", str(shape.memory)]


def test_control_groups_of_version_2(tmp_path: Path) -> None:
    (tmp_path / "cgroup.controllers").write_text("cpu io memory pids")
    cgroups = find_cgroups(tmp_path)
    assert cgroups is not None
    assert (tmp_path / "cgroup.subtree_control").read_text() == "+memory +pids +cpu"
    group = cgroups.create(Limits(memory=99, processes=5, cpus=0.5))
    (folder,) = set(group.folders.values())
    assert folder.parent == tmp_path / "loci.sandboxes"
    written = {file.name: file.read_text() for file in folder.iterdir()}
    assert written == {"memory.max": "99", "pids.max": "5", "cpu.max": "50000 100000"}
    assert not group.ran_out_of_memory()
    (folder / "memory.events").write_text("low 0\noom 1\noom_kill 1\n")
    assert group.ran_out_of_memory()


def test_no_control_groups_where_they_cannot_be_made(tmp_path: Path) -> None:
    assert find_cgroups(tmp_path) is None
    (tmp_path / "cgroup.controllers").write_text("cpu")
    assert find_cgroups(tmp_path) is None


def test_what_dead_services_left_is_ended() -> None:
    mark = mark_of_this_process()
    world, _, _ = mark.rpartition("/")
    sleep = [sys.executable, "-S", "-c", "import time; time.sleep(60)"]
    ours, orphan = subprocess.Popen([*sleep, mark]), subprocess.Popen([*sleep, f"{world}/1"])  # the same pid, earlier
    try:
        until = time.monotonic() + 30
        while orphan.poll() is None and time.monotonic() < until:
            end_orphans()  # again: before its exec it has the command line of this process
            time.sleep(0.05)
        assert (orphan.poll(), ours.poll()) == (-9, None)
    finally:
        for process in (ours, orphan):
            process.kill()
            process.wait()


def test_the_worker_needs_nothing_but_the_standard_library() -> None:
    lines = [line for text in worker_files().values() for line in text.decode().splitlines()]
    imported = {line.split()[1].split(".")[0] for line in lines if line.startswith(("import ", "from "))}
    assert imported - {""} <= set(sys.stdlib_module_names)
    assert len(worker_files()) > 5


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("node") is None, reason="for root, with Node")
async def test_a_tree_below_a_closed_folder_has_its_node_entry_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = tmp_path / "closed" / "node"
    (closed / "node_modules" / "swc").mkdir(parents=True)
    (closed / "entry.mjs").write_text("1")
    (closed / "node_modules" / "swc" / "wasm.js").write_text("2")
    closed.parent.chmod(0o700)
    monkeypatch.setattr(node_runtime, "_ENTRY", closed)
    monkeypatch.setenv("TMPDIR", "/tmp")
    monkeypatch.setattr(tempfile, "tempdir", "/tmp")
    found = await node_runtime.find_node()
    try:
        assert found.copied
        assert node_runtime.everybody_reads(f"{found.entry}/node_modules/swc/wasm.js")
        assert node_runtime.everybody_reads(f"{found.entry}/entry.mjs")
    finally:
        found.discard()
    with pytest.raises(FileNotFoundError):
        node_runtime.everybody_reads(found.entry)
