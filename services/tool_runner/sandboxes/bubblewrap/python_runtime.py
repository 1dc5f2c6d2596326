"""Finds the Python that runs tools in bubblewrap, and the few folders of the host that it needs."""

import asyncio
import base64
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from services.common.processes import Child

_MINIMUM = (3, 11)
_SECONDS = 10.0
_QUESTION = """
import json, os, sys, sysconfig
paths = [sys.executable, sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")]
if library := sysconfig.get_config_var("INSTSONAME") or "":
    paths.append(os.path.join(sysconfig.get_config_var("LIBDIR") or "", library))
print(json.dumps([sys.version_info[:2], sysconfig.get_config_var("MULTIARCH") or "", paths]))
"""
# What Python writes beside a source, as it reads it without one: magic number, three words of no use here, the code.
_COMPILER = """
import base64, importlib.util, json, marshal, sys
compiled = {}
for path, text in json.load(sys.stdin).items():
    code = marshal.dumps(compile(text, "/opt/loci/" + path, "exec"))
    compiled[path + "c"] = base64.b64encode(importlib.util.MAGIC_NUMBER + bytes(12) + code).decode()
print(json.dumps(compiled))
"""


@dataclass(frozen=True)
class PythonRuntime:
    """`executable` and `mounts` are real paths of the host, the same inside; `links` are (target, path)."""

    executable: str
    mounts: tuple[str, ...]
    links: tuple[tuple[str, str], ...]
    version: tuple[int, ...] = ()


async def find_runtimes() -> list[PythonRuntime]:
    """Returns every Python of at least 3.11 that answers, the one that runs this service first."""
    answers = [await _ask(executable) for executable in _candidates()]
    return [runtime for answer in answers if answer and (runtime := _runtime(answer))]


async def compile_files(runtime: PythonRuntime, files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Sources as that Python's bytecode, by their paths with a `c`: a worker starts in half the time then."""
    texts = json.dumps({path: content.decode() for path, content in files.items()})
    answer = await _answer(runtime.executable, _COMPILER, texts)
    return {path: base64.b64decode(code) for path, code in answer.items()} if answer else dict(files)


def _candidates() -> list[str]:
    names = [sys.executable, "/usr/bin/python3", "/usr/local/bin/python3", shutil.which("python3")]
    return list(dict.fromkeys(os.path.realpath(name) for name in names if name and os.path.exists(name)))


async def _ask(executable: str) -> list[Any] | None:
    answer: list[Any] | None = await _answer(executable, _QUESTION, "")
    return answer


async def _answer(executable: str, program: str, argument: str) -> Any:
    """Returns the JSON that a program prints; None where it prints none."""
    command = (executable, "-I", "-S", "-c", program)
    try:
        child = await Child.start(*command, environment={}, errors=subprocess.DEVNULL)
    except OSError:
        return None
    try:
        async with asyncio.timeout(_SECONDS):
            await child.send(argument.encode())
            child.end_input()
            return json.loads(await child.reader.read())
    except (TimeoutError, ConnectionError, ValueError):
        return None
    finally:
        await child.end()


def _runtime(answer: list[Any]) -> PythonRuntime | None:
    version, multiarch, paths = answer
    if tuple(version) < _MINIMUM:
        return None
    present = [os.path.realpath(path) for path in paths if os.path.exists(path)]
    links = tuple((os.readlink(path), path) for path in ("/lib", "/lib64") if os.path.islink(path))
    mounts = tuple(dict.fromkeys(present + _libraries(multiarch)))
    return PythonRuntime(present[0], mounts, links, tuple(version))


def _libraries(multiarch: str) -> list[str]:
    """Returns shared libraries and the loader, time zones; nothing of /etc but the loader's cache."""
    loaders = [str(path) for top in ("/usr/lib", "/lib") for path in Path(top).glob("ld-linux*")]
    own = [f"/usr/lib/{multiarch}", f"/lib/{multiarch}", *loaders]
    wide = ["/usr/lib", "/lib"]
    folders = own if multiarch and os.path.isdir(own[0]) else wide
    folders += ["/usr/lib64", "/lib64", "/usr/share/zoneinfo", "/etc/ld.so.cache"]
    kept = [path for path in folders if os.path.exists(path)]
    return [os.path.abspath(path) for path in kept if not _below_link(path)]


def _below_link(path: str) -> bool:
    """Paths below /lib and /lib64 come with the link itself where those are links."""
    top = "/" + path.split("/")[1]
    return os.path.islink(top)
