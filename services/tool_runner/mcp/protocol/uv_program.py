"""Runs inside a sandbox: becomes what `uv run` would, of code in a folder that is shown. Standard library only.

Its arguments: the project's folder ("": the working folder), and the words behind `uv run`: a script, `-m` and a
module, or a program. The Python is that of the project's .venv, else the sandbox's; nothing is installed.
"""

import os
import signal
import sys
from importlib.metadata import entry_points
from typing import NoReturn

_NOT_FOUND = 127
_RUN_PROGRAM = (
    "import sys; from importlib.metadata import entry_points; sys.argv = sys.argv[1:]; "
    "sys.exit(next(e for e in entry_points(group='console_scripts') if e.name == sys.argv[0]).load()())"
)


def main() -> None:
    """Becomes the program; ends with 127 where it cannot."""
    folder, *words = sys.argv[1:]
    folder = os.path.abspath(folder or ".")
    if not os.path.isdir(folder):
        fail(f"{folder}: No such file or directory")
    os.chdir(folder)
    # A script may lie in a project that is not the working folder.
    script = words[0] if words[0].endswith(".py") else ""
    environment = project_environment(os.path.dirname(os.path.join(folder, script)))
    if environment:
        os.environ["VIRTUAL_ENV"] = environment
        os.environ["PATH"] = f"{environment}/bin:{os.environ['PATH']}"
    command = command_of(words, environment)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, and the program would, too
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvp(command[0], command)
    except OSError as error:
        fail(f"{command[0]} cannot be started: {error}")


def project_environment(folder: str) -> str:
    """Returns the .venv of the project that a folder is of; "" where it has none, and needs none."""
    while True:
        environment = os.path.join(folder, ".venv")
        python = os.path.join(environment, "bin", "python")
        if os.path.exists(python):
            return environment
        if os.path.lexists(python):
            fail(f"{environment} uses {os.path.realpath(python)}: No such file or directory")
        if os.path.isfile(os.path.join(folder, "pyproject.toml")):
            if os.environ.get("PYTHONPATH"):  # packages that `--with` names
                return ""
            fail(
                f"{folder} has no .venv, and nothing is installed here: run 'uv sync' there, or name packages by --with"
            )
        if folder == "/":
            return ""
        folder = os.path.dirname(folder)


def command_of(words: list[str], environment: str) -> list[str]:
    """Returns what the words come to."""
    python = os.path.join(environment, "bin", "python") if environment else "python3"
    first = words[0]
    if first in ("-m", "--module"):
        return [python, "-m", *words[1:]]
    if first.endswith(".py") or first == "-":
        return [python, *words]
    if first in ("python", "python3"):
        return [python, *words[1:]]
    if not environment and any(entry.name == first for entry in entry_points(group="console_scripts")):
        return [python, "-c", _RUN_PROGRAM, *words]
    own = os.path.join(environment, "bin", first)
    return [own if environment and os.path.exists(own) else first, *words[1:]]


def fail(problem: str) -> NoReturn:
    """Ends with the problem as the last words."""
    print(problem, file=sys.stderr)
    sys.exit(_NOT_FOUND)


if __name__ == "__main__":
    main()
