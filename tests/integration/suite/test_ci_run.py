"""`.ci/run` tells the truth, whatever breaks: its last lines name what failed, and its exit code is right.

The script is the real one, in a repository of its own; what it calls (make, apt-get, dockerd) is written by each test.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
# Does what a file of its target's (make) or package's (apt-get) name says, if there is one; notes each call.
FAKE = """#!/bin/bash
echo "$(basename "$0") $*" >>"$FAKES/calls"
tally=
for word; do case $word in TALLY=*) tally=${word#TALLY=} ;; esac; done
for word; do if [[ -f $FAKES/on/${word//\\//_} ]]; then . "$FAKES/on/${word//\\//_}"; fi; done
exit 0
"""
PASSED = 'printf "passed\\t3\\nskipped\\t1\\n" >"$tally"'


class Run:
    """A repository, and the programs that it finds."""

    def __init__(self, folder: Path) -> None:
        self.tree, self.fakes, self.temporary = folder / "tree", folder / "fakes", folder / "temporary"
        for path in (self.tree, self.fakes / "on", self.fakes / "bin", self.temporary):
            path.mkdir(parents=True)
        shutil.copytree(ROOT / ".ci", self.tree / ".ci", ignore=shutil.ignore_patterns("logs", "proven"))
        shutil.copytree(ROOT / "tests/suite", self.tree / "tests/suite", ignore=shutil.ignore_patterns("__pycache__"))
        (self.tree / ".gitignore").write_text("/.ci/logs/\n__pycache__/\n")
        self.program("make", FAKE)
        self.program("apt-get", FAKE)
        self.program("id", "#!/bin/sh\necho 0\n")
        self.program("docker", "#!/bin/sh\nexit 1\n")
        self.program("dockerd", "#!/bin/sh\necho no kernel for this >&2\nexit 1\n")
        self.on("test", PASSED)
        self.git("init", "--quiet")
        self.git("add", "--all")
        self.git("-c", "user.name=t", "-c", "user.email=t@localhost", "commit", "--quiet", "--message=all")
        head = self.git("rev-parse", "HEAD")
        # So that no long part is asked for.
        (self.tree / ".ci/proven").write_text(f"tests {head}\n")

    def git(self, *arguments: str) -> str:
        done = subprocess.run(["git", *arguments], cwd=self.tree, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def program(self, name: str, text: str) -> None:
        path = self.fakes / "bin" / name
        path.write_text(text)
        path.chmod(0o755)

    def on(self, word: str, script: str) -> None:
        """What `make` or `apt-get` does when told this word."""
        (self.fakes / "on" / word).write_text(script)

    def calls(self, start: str) -> int:
        return sum(line.startswith(start) for line in (self.fakes / "calls").read_text().splitlines())

    def __call__(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        settings = {name: value for name, value in os.environ.items() if not name.startswith("LOCI_")}
        settings |= {"PATH": f"{self.fakes / 'bin'}:{os.environ['PATH']}", "FAKES": str(self.fakes)}
        settings |= {"TMPDIR": str(self.temporary), "LOCI_CI_PAUSE": "0", **environment}
        command = ["bash", str(self.tree / ".ci/run"), *arguments]
        return subprocess.run(
            command,
            env=settings,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            check=False,
        )


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path)


def last(done: subprocess.CompletedProcess[str]) -> str:
    return done.stdout.splitlines()[-1]


def row(done: subprocess.CompletedProcess[str], stage: str) -> list[str]:
    """Passed, failed and skipped of a stage, in the table of the last lines."""
    table = done.stdout.rpartition("\nstage ")[2]
    (line,) = [line for line in table.splitlines() if line.split()[:1] == [stage] and len(line.split()) == 5]
    return line.split()[2:]


def test_all_is_well(run: Run) -> None:
    done = run()
    assert done.returncode == 0, done.stdout
    assert last(done) == "3 passed, 0 failed, 1 skipped"
    assert row(done, "test") == ["3", "0", "1"]
    assert not list(run.temporary.iterdir())
    assert (run.tree / ".ci/logs/types.log").exists()


def test_a_failed_test_is_named_and_later_stages_run(run: Run) -> None:
    run.on(
        "artefacts", 'printf "passed\\t7\\nskipped\\t0\\nfailed\\ttests/a.py::test_b\\tstale: x\\n" >"$tally"; exit 1'
    )
    done = run()
    assert done.returncode == 1
    assert "== artefacts: failed\ntests/a.py::test_b\n    stale: x\n" in done.stdout
    assert row(done, "artefacts") == ["7", "1", "0"]
    assert row(done, "test") == ["3", "0", "1"]
    assert last(done) == "10 passed, 1 failed, 1 skipped"


def test_a_failed_stage_without_tests_is_a_failure(run: Run) -> None:
    run.on("types", "echo x.py:1: error: no; echo make: '*** [types]' Error 1; exit 2")
    done = run()
    assert done.returncode == 1
    assert "== types: failed\nthe stage itself (exit code 2)\n    x.py:1: error: no\n" in done.stdout
    assert last(done) == "3 passed, 1 failed, 1 skipped"


def test_a_stage_that_fails_although_its_tests_passed_is_a_failure(run: Run) -> None:
    run.on("test", f"{PASSED}; echo it crashed; exit 3")
    done = run()
    assert done.returncode == 1
    assert last(done) == "3 passed, 1 failed, 1 skipped"


def test_second_tries_are_named(run: Run) -> None:
    run.on("test", f'{PASSED}; printf "second\\ttests/a.py::test_slow\\t2 < 1\\n" >>"$tally"')
    done = run()
    assert done.returncode == 0
    assert "== test: passed at the second try, alone\ntests/a.py::test_slow\n    2 < 1\n" in done.stdout
    assert last(done) == "3 passed, 0 failed, 1 skipped"


def test_a_download_that_fails_once_is_tried_again(run: Run) -> None:
    run.on("setup-dev", '[[ -e $FAKES/once ]] || { touch "$FAKES/once"; exit 2; }')
    done = run()
    assert done.returncode == 0, done.stdout
    assert run.calls("make setup-dev") == 2


def test_a_download_that_always_fails_is_named_and_the_rest_runs(run: Run) -> None:
    run.on("update", "echo no such host; exit 100")
    run.on("node-root", "exit 2")
    done = run()
    assert done.returncode == 1
    assert run.calls("apt-get -qq update") == 3
    assert run.calls("make node-root") == 3
    assert (
        "== packages: failed\nthe stage itself (exit code 1)\n    failed three times: apt-get -qq update\n"
        in done.stdout
    )
    assert row(done, "test") == ["3", "0", "1"]
    assert last(done) == "3 passed, 2 failed, 1 skipped"


def test_an_engine_that_does_not_start_costs_the_parts_that_need_it(run: Run) -> None:
    (run.tree / ".ci/proven").unlink()
    done = run()
    assert done.returncode == 1
    assert "== engine: failed" in done.stdout
    assert "the container engine does not start; it says: no kernel for this" in done.stdout
    assert "not run, for want of containers: sandboxes images containers" in done.stdout
    (call,) = [line for line in (run.fakes / "calls").read_text().splitlines() if line.startswith("make test-parts")]
    assert " cli " in call
    assert "images" not in call


@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts")
def test_a_mount_left_behind_changes_nothing(run: Run) -> None:
    mount = 'left=$(echo "$TMPDIR"/loci-ci.*)/left; mkdir "$left" && mount -t tmpfs none "$left" || exit 9'
    run.on("lint", mount)
    done = run()
    assert done.returncode == 0, done.stdout
    assert str(run.temporary) not in Path("/proc/self/mounts").read_text()
    assert not list(run.temporary.iterdir())


def test_what_cannot_be_removed_is_said_and_changes_nothing(run: Run) -> None:
    run.program("rm", '#!/bin/bash\ncase "$*" in *loci-ci.*) exit 1 ;; esac\nexec /bin/rm "$@"\n')
    done = run()
    assert done.returncode == 0
    assert f"left behind: {run.temporary}/loci-ci." in done.stdout
    assert last(done) == "3 passed, 0 failed, 1 skipped"


def test_one_that_is_ended_says_how_far_it_came(run: Run) -> None:
    # As `timeout` does it: all processes of the run at once.
    run.on("test", "kill -TERM 0; sleep 60")
    done = run()
    assert done.returncode == 143
    assert row(done, "lint") == ["0", "0", "0"]
    assert row(done, "test") == ["0", "1", "0"]
    assert last(done) == "0 passed, 1 failed, 0 skipped"


def test_all_of_it_notes_what_is_proven(run: Run) -> None:
    run.program("docker", "#!/bin/sh\nexit 0\n")
    (run.tree / "scripts").mkdir()
    (run.tree / "scripts/local-base").write_text("#!/bin/sh\n")
    (run.tree / "scripts/local-base").chmod(0o755)
    run.git("add", "--all")
    run.git("-c", "user.name=t", "-c", "user.email=t@localhost", "commit", "--quiet", "--message=more")
    done = run("--all")
    assert done.returncode == 0, done.stdout
    head = run.git("rev-parse", "HEAD")
    assert (run.tree / ".ci/proven").read_text() == f"tests {head}\nprotos {head}\n"
