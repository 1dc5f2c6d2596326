"""The folders of the machine that programs of MCP servers see."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.common.core.refusals import Refused
from services.tool_runner.core.job import HostFolder, HostView, Job, Language, Mode
from services.tool_runner.sandboxes.bubblewrap import spec as bubblewrap
from services.tool_runner.sandboxes.bubblewrap.packages import Packages
from services.tool_runner.sandboxes.bubblewrap.python_runtime import PythonRuntime
from services.tool_runner.sandboxes.host_folders import chosen_folders, parse_host_folders
from services.tool_runner.sandboxes.launcher.spec import container_config, read_request
from services.tool_runner.sandboxes.ports import Shape, shape_of


def test_folders_are_named_with_colons(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    two.mkdir()
    assert parse_host_folders("", []) == ()
    shown = (HostFolder(str(one)), HostFolder(str(two)))
    assert parse_host_folders(f"{one}/:{two}: {one}", [""]) == shown
    assert parse_host_folders(f"{two}:{one}/:rw", [""]) == (HostFolder(str(one), writable=True), shown[1])
    with pytest.raises(ValueError, match="behind the folder"):
        parse_host_folders(f"rw:{one}", [""])


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("relative", "whole path"),
        ("/no/such/folder", "whole path"),
        ("/", "name the folders in it"),
        ("/proc/self", "name the folders in it"),
        ("/tmp", "name the folders in it"),
        ("{home}", "Loci keeps"),
        ("{home}/below", "Loci keeps"),
        ("{above}", "Loci keeps"),
        ("{link}", "Loci keeps"),
    ],
)
def test_what_cannot_be_shown_is_refused(tmp_path: Path, path: str, says: str) -> None:
    above = tmp_path / "above"
    home, link = above / "home", tmp_path / "link"
    (home / "below").mkdir(parents=True)
    link.symlink_to(home)
    with pytest.raises(ValueError, match=says):
        parse_host_folders(path.format(home=home, above=above, link=link), [str(home)])


def test_a_server_sees_those_of_them_that_it_names() -> None:
    notes, data = HostFolder("/notes", writable=True), HostFolder("/srv/data")
    assert chosen_folders((notes, data), ()) == (notes, data)
    assert chosen_folders((notes, data), ("/notes/",)) == (notes,)
    assert chosen_folders((notes, data), ("/srv/data", "/notes:ro")) == (data, HostFolder("/notes"))
    for path in ("/notes/below", "/notes/../srv", "/etc", "/"):
        with pytest.raises(Refused, match="is not shown: LOCI_MCP_STDIO_PATHS has to name it"):
            chosen_folders((notes, data), (path,))


def test_only_a_job_that_asks_gets_them() -> None:
    assert shape_of(Job("", "", {})).host == HostView()
    job = Job("", "", {}, mode=Mode.PROCESS, host=HostView((HostFolder("/srv/mcp"),)))
    assert shape_of(job).host.folders == (HostFolder("/srv/mcp"),)
    assert shape_of(job) != shape_of(Job("", "", {}, mode=Mode.PROCESS))


@pytest.mark.parametrize("root", [True, False])
def test_bubblewrap_binds_them_read_only_over_the_folders_in_memory(
    monkeypatch: pytest.MonkeyPatch, root: bool
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0 if root else 1000)
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")

    def argv(*folders: str, home: str = "", layer: bool = False) -> str:
        host = HostView(tuple(map(HostFolder, folders)), home=home)
        shape = Shape(Language.PYTHON, 1, 1, 1.0, 1, host=host)
        python = PythonRuntime("/usr/bin/python3", (), ())
        words = bubblewrap.command(
            "bwrap",
            shape,
            60_720,
            python=python,
            packages=Packages(),
            node=None,
            layer=Path("/layers/a") if layer else None,
            files={},
            etc={},
            seccomp=1,
            info=2,
            block=3,
            mark="m",
        )
        return " ".join(words)

    assert "/mnt" not in argv()
    # Beside its packages a program with a home may write, and never over them.
    assert "--ro-bind /layers/a /opt/loci/layer " in argv(layer=True)
    beside = argv(home="/homes/a", layer=True)
    assert beside.index("--tmpfs /opt/loci/layer ") < beside.index(
        "--ro-bind-try /layers/a/python /opt/loci/layer/python"
    )
    line, staged = argv("/work/tools"), "/mnt/0" if root else "/work/tools"
    bound = line.index(f"--ro-bind {staged} /work/tools")
    assert line.index("--tmpfs /work ") < bound < line.rindex("--remount-ro /")
    # For root they are bound a first time, by root, who may go where the sandbox's user may not.
    first = "bwrap --die-with-parent --dev-bind / / --tmpfs /mnt --ro-bind /work/tools /mnt/0 -- /usr/bin/setpriv "
    assert line.startswith(first) is root
    # A home is its /work; it is the only thing there that can be written to and stays.
    line, staged = argv(home="/home/of/it"), "/mnt/home" if root else "/home/of/it"
    assert f"--bind {staged} /work" in line
    assert "--tmpfs /work" not in line


def test_a_container_binds_them_read_only() -> None:
    fields = {"language": "python", "layer": "", "memory": 1, "processes": 1, "cpus": 1.0, "disk": 1}
    plain = container_config("image", "x86_64", read_request(fields), "owner")
    assert plain["HostConfig"]["Mounts"] == []
    request = read_request({**fields, "host_folders": [["/srv/mcp", False], ["/srv/data", True]]})
    assert container_config("image", "x86_64", request, "owner")["HostConfig"]["Mounts"] == [
        {"Type": "bind", "Source": "/srv/mcp", "Target": "/srv/mcp", "ReadOnly": True},
        {"Type": "bind", "Source": "/srv/data", "Target": "/srv/data", "ReadOnly": False},
    ]
