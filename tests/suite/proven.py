"""What was proven at which commit (.ci/proven), and what has changed since.

    python3 -m tests.suite.proven parts             the long parts that a change since then is about
    python3 -m tests.suite.proven all-parts         all of them
    python3 -m tests.suite.proven engine "PARTS"    those of these that need a container engine
    python3 -m tests.suite.proven others "PARTS"    those that do not
    python3 -m tests.suite.proven protos            the commit whose protos clients may have; nothing if there is none
    python3 -m tests.suite.proven write             notes that everything passed at HEAD

The file has a line for each of two facts: `tests COMMIT`, where `make test-all` passed, and `protos COMMIT`.
Needs git and the standard library alone.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.suite.parts import all_names, asked_for, need_engine

ROOT = Path(__file__).resolve().parents[2]
FILE = Path(".ci/proven")


class Proven:
    """The file of one repository."""

    def __init__(self, root: Path = ROOT) -> None:
        self._root = root

    def commit(self, fact: str) -> str | None:
        """Returns the commit that stands for "tests" or "protos", if it is in the history of HEAD."""
        for line in self._lines():
            name, _, commit = line.partition(" ")
            if name == fact and self._git("merge-base", "--is-ancestor", commit, "HEAD") is not None:
                return commit
        return None

    def parts(self) -> list[str]:
        """Returns the long parts to run: those a change since then is about, all if nothing is proven."""
        commit = self.commit("tests")
        changed = self._changed_since(commit) if commit else None
        return list(all_names()) if changed is None else asked_for(changed)

    def write(self) -> str:
        """Notes HEAD for both facts; returns what was done."""
        head = self._git("rev-parse", "HEAD")
        if head is None or self._git("status", "--porcelain") != "":
            return "not noted in .ci/proven: what was tested is no commit"
        notes = [line for line in self._text().splitlines() if line.startswith("#")]
        (self._root / FILE).write_text("\n".join([*notes, f"tests {head}", f"protos {head}", ""]))
        return f"everything passed at {head[:8]}: commit .ci/proven"

    def _changed_since(self, commit: str) -> list[str] | None:
        """Paths that differ from the commit, whether that is committed or not."""
        tracked = self._git("diff", "--name-only", "--no-renames", commit)
        new = self._git("ls-files", "--others", "--exclude-standard")
        return None if tracked is None or new is None else [*tracked.splitlines(), *new.splitlines()]

    def _lines(self) -> list[str]:
        return [line for line in self._text().splitlines() if line and not line.startswith("#")]

    def _text(self) -> str:
        path = self._root / FILE
        return path.read_text() if path.exists() else ""

    def _git(self, *arguments: str) -> str | None:
        """Returns what git says; None if it fails."""
        try:
            done = subprocess.run(["git", *arguments], cwd=self._root, capture_output=True, text=True, check=False)
        except FileNotFoundError:
            return None
        return done.stdout.strip() if done.returncode == 0 else None


def main(question: str, parts: str = "") -> str:
    """Returns the answer to one of the questions above."""
    proven, names = Proven(), parts.split()
    engine = need_engine(names)
    match question:
        case "parts":
            return " ".join(proven.parts())
        case "all-parts":
            return " ".join(all_names())
        case "engine":
            return " ".join(engine)
        case "others":
            return " ".join(name for name in names if name not in engine)
        case "protos":
            return proven.commit("protos") or ""
        case "write":
            return proven.write()
    raise SystemExit(__doc__)


if __name__ == "__main__":
    print(main(*sys.argv[1:]))
