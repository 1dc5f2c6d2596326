"""Runs inside a sandbox: finds the program of an npm package, and becomes it. Standard library only.

Its arguments: the package, the name of the program ("": the only one, or the one of the package's name), and the
program's own. The process is then `node FILE ARGUMENT...`, as it would be of npx.

loci_package_copy names a folder that stays. The package is copied there, since many keep their data beside their code;
the packages that it needs are links to where they are installed.
"""

import contextlib
import json
import os
import shutil
import signal
import sys
from typing import NoReturn

_NOT_FOUND = 127
_MOST_COPIED = 64 * 1024 * 1024
_NOT_COPIED = ("node_modules", "package.json")


def main() -> None:
    """Becomes the program; ends with 127 where there is none."""
    name, wanted, *arguments = sys.argv[1:]
    folder = package_folder(name)
    file = program_file(folder, name, wanted)
    if copies := os.environ.pop("loci_package_copy", ""):
        file = copied(file, folder, name, copies)
    command = [*interpreter(file), file, *arguments]
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, and the program would, too
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvp(command[0], command)
    except OSError as error:
        fail(f"{file} cannot be started: {error}")


def package_folder(name: str) -> str:
    """Returns where the package is installed."""
    places = os.environ.get("NODE_PATH", "").split(":")
    folders = [os.path.join(place, name) for place in places if place]
    found = [folder for folder in folders if os.path.isfile(os.path.join(folder, "package.json"))]
    return found[0] if found else fail(f"the package {name} is not there")


def program_file(folder: str, name: str, wanted: str) -> str:
    """Returns the file of the program."""
    with open(os.path.join(folder, "package.json"), encoding="utf-8") as manifest:
        declared = json.load(manifest).get("bin") or {}
    usual = name.split("/")[-1]
    programs = {usual: declared} if isinstance(declared, str) else declared
    # Several names may be of one program.
    alone = next(iter(programs), usual) if len(set(programs.values())) == 1 else usual
    chosen = wanted or (usual if usual in programs else alone)
    if chosen not in programs:
        fail(f"{name} has the programs {', '.join(programs) or 'none'}, not {chosen}")
    return os.path.normpath(os.path.join(folder, programs[chosen]))


def copied(file: str, folder: str, name: str, copies: str) -> str:
    """Returns the program's file in a copy of its package; as it is, where the package is too large for one."""
    if package_bytes(folder) > _MOST_COPIED:
        return file
    modules = os.path.join(copies, "node_modules")
    installed = os.path.normpath(os.path.join(folder, *[".."] * len(name.split("/"))))
    link_others(installed, modules, name.split("/"))
    copy = os.path.join(modules, name)
    if manifest_of(copy) != manifest_of(folder):
        # What it wrote there stays; the manifest comes last, and says that the rest is there.
        shutil.copytree(folder, copy, dirs_exist_ok=True, ignore=lambda at, _: _NOT_COPIED if at == folder else ())
        shutil.copyfile(os.path.join(folder, "package.json"), os.path.join(copy, "package.json"))
    own = os.path.join(folder, "node_modules")
    if os.path.isdir(own):
        link(own, os.path.join(copy, "node_modules"))
    return os.path.join(copy, os.path.relpath(file, folder))


def link_others(installed: str, modules: str, parts: list[str]) -> None:
    """Links all packages but the one that `parts` name."""
    os.makedirs(modules, exist_ok=True)
    for name in os.listdir(installed):
        if name == parts[0] and len(parts) > 1:
            link_others(os.path.join(installed, name), os.path.join(modules, name), parts[1:])
        elif name != parts[0]:
            link(os.path.join(installed, name), os.path.join(modules, name))


def link(target: str, path: str) -> None:
    """Makes a link, where there is none to that yet."""
    if os.path.islink(path) and os.readlink(path) == target:
        return
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    with contextlib.suppress(FileExistsError):  # another process of the server was faster
        os.symlink(target, path)


def package_bytes(folder: str) -> int:
    """Returns the size of a package without those that it brings."""
    total = 0
    for path, folders, files in os.walk(folder):
        if path == folder and "node_modules" in folders:
            folders.remove("node_modules")
        total += sum(os.lstat(os.path.join(path, file)).st_size for file in files)
    return total


def manifest_of(folder: str) -> bytes:
    """Returns the package.json; nothing where there is none."""
    with contextlib.suppress(OSError), open(os.path.join(folder, "package.json"), "rb") as file:
        return file.read()
    return b""


def interpreter(file: str) -> list[str]:
    """Returns the words before the file: Node with its options, by the first line; none for other interpreters."""
    with open(file, "rb") as script:
        first = script.readline(500).decode("utf-8", "replace").split()
    if not first or not first[0].startswith("#!"):
        return ["node"]
    words = [first[0].removeprefix("#!"), *first[1:]]
    found = [number for number, word in enumerate(words) if word.rpartition("/")[2] in ("node", "nodejs")]
    return ["node", *words[found[0] + 1 :]] if found else []


def fail(problem: str) -> NoReturn:
    """Ends with the problem as the last words."""
    print(problem, file=sys.stderr)
    sys.exit(_NOT_FOUND)


if __name__ == "__main__":
    main()
