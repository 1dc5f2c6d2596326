"""Runs inside a sandbox: installs packages, then writes what came of it to stdout as a tar. Standard library only.

Its argument is JSON: kind (pip or npm), requirements, options (of the installer), pip and npm (names of archives of
the installers below /inputs, for images that have none). Words of the installer go to stderr. The last entry of the
tar is DONE; without it, what came is not whole. Nothing of the packages is run, unless pip is let build them.
"""

import compileall
import json
import os
import py_compile
import shutil
import subprocess
import sys
import tarfile
from typing import Any

LAYER, WORK, DONE = "/opt/loci/layer", "/work", ".done"
_LIMIT = "packages of many MiB need a higher LOCI_LAYER_MIB"
_RUN_PIP = (
    "import runpy, sys\n"
    "where = sys.argv.pop(1)\n"
    "sys.path[:0] = [where] if where else []\n"
    "runpy.run_module('pip', run_name='__main__', alter_sys=True)"
)


def main() -> None:
    """Installs, and sends."""
    plan = json.loads(sys.argv[1])
    if plan["kind"] == "pip":
        code, folder = install_python(plan), "python"
    else:
        code, folder = install_node(plan), "node_modules"
    if code < 0:
        print(f"the installer was killed by signal {-code}, most likely for its memory: {_LIMIT}", file=sys.stderr)
    if code != 0:
        sys.exit(1 if code < 0 else code)
    with tarfile.open(fileobj=sys.stdout.buffer, mode="w|") as tar:
        tar.add(os.path.join(WORK, folder), folder)
        tar.addfile(tarfile.TarInfo(DONE))


def install_python(plan: dict[str, Any]) -> int:
    """Returns pip's exit status. The packages are compiled, for the place where calls find them."""
    target = os.path.join(WORK, "python")
    os.makedirs(target)
    common = ["install", "--target", target, "--no-compile", "--no-cache-dir", "--no-input", "--progress-bar", "off"]
    common += ["--disable-pip-version-check", "--no-warn-script-location", "--root-user-action", "ignore"]
    command = [sys.executable, "-I", "-c", _RUN_PIP, pip_archive(plan), *common, *plan["options"]]
    code = subprocess.call([*command, "--", *plan["requirements"]], stdout=2)
    # By content: a layer's files have no times of their own.
    unchecked = py_compile.PycInvalidationMode.UNCHECKED_HASH
    compileall.compile_dir(target, quiet=2, stripdir=WORK, prependdir=LAYER, invalidation_mode=unchecked)
    return code


def pip_archive(plan: dict[str, Any]) -> str:
    """Returns the path of pip: "" for the image's own."""
    try:
        import pip  # noqa: F401, PLC0415

        return ""
    except ImportError:
        pass
    for folder in (os.path.join(sys.prefix, "share/python-wheels"), bundled_folder()):
        for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
            if name.startswith("pip-") and name.endswith(".whl"):
                return os.path.join(folder, name)
    if plan["pip"]:
        return os.path.join("/inputs", plan["pip"])
    sys.exit("there is no pip, neither in the sandbox nor beside the tool runner: install it there")


def bundled_folder() -> str:
    """Returns the folder where ensurepip keeps its pip."""
    try:
        import ensurepip  # noqa: PLC0415

        return os.path.join(os.path.dirname(ensurepip.__file__), "_bundled")
    except ImportError:
        return ""


def install_node(plan: dict[str, Any]) -> int:
    """Returns npm's exit status."""
    common = ["install", "--prefix", WORK, "--cache", "/tmp/npm", "--ignore-scripts", "--no-audit", "--no-fund"]
    common += ["--no-save", "--no-package-lock", "--no-update-notifier", "--logs-max=0", "--omit=dev"]
    command = [*npm_command(plan), *common, *plan["options"]]
    code = subprocess.call([*command, "--", *plan["requirements"]], stdout=2, cwd=WORK)
    os.makedirs(os.path.join(WORK, "node_modules"), exist_ok=True)
    return code


def npm_command(plan: dict[str, Any]) -> list[str]:
    """Returns npm of the image, else the one that was sent."""
    if npm := shutil.which("npm"):
        return [npm]
    if not plan["npm"]:
        sys.exit("there is no npm, neither in the sandbox nor beside the tool runner: install Node with npm there")
    with tarfile.open(os.path.join("/inputs", plan["npm"])) as archive:
        archive.extractall("/tmp/npm-program")  # noqa: S202 - npm of ours, in a sandbox
    return ["node", "/tmp/npm-program/npm/bin/npm-cli.js"]


if __name__ == "__main__":
    main()
