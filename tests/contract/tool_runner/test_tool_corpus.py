"""The corpus of tools, run: in every sandbox in one session, and by every Python of this machine."""

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from services.tool_runner.core.job import MIB, Job, Limits
from services.tool_runner.core.ports import Sandbox
from services.tool_runner.core.schemas import raw_arguments
from services.tool_runner.core.schemas.coercion import coerce
from services.tool_runner.core.schemas.python import derive_schema
from services.tool_runner.sandboxes import worker
from tests.tool_corpus.cases import Case, python_cases

_LIMITS = Limits(seconds=30, memory=256 * MIB)
_VERSIONS = [(3, minor) for minor in range(11, 15)]
# Calls each as the worker does, and prints [outcome or null where a module is missing].
_PROGRAM = """
import importlib.util, json, sys
sys.path.insert(0, sys.argv[1])
from worker.running import run
jobs = json.load(sys.stdin)
print(json.dumps([run(job) if not job["needs"] or importlib.util.find_spec(job["needs"]) else None for job in jobs]))
"""


def job_of(case: Case) -> Job:
    """The call as the runner makes it ready."""
    schema = derive_schema(case.source, case.json("args_schema"))
    parameters = raw_arguments.without_habits(schema["parameters"])
    arguments = raw_arguments.complete(parameters, coerce(parameters, raw_arguments.parse(case.arguments)))
    names = tuple(raw_arguments.names_of(parameters))
    typed = parameters if "args_schema" in case.members else {}
    return Job(case.source, schema["name"], arguments, limits=_LIMITS, parameters=names, schema=typed)


async def test_in_a_sandbox(sandbox: Sandbox) -> None:
    wrong: dict[str, Any] = {}
    for case in python_cases():
        result = await sandbox.run(replace(job_of(case), session="corpus"))
        if result.result is None or json.loads(result.result) != case.json("returns"):
            wrong[case.name] = result
    assert wrong == {}


def _executable(version: tuple[int, int]) -> str | None:
    """A Python of the version: of the path, or of pyenv."""
    if sys.version_info[:2] == version:
        return sys.executable
    name = f"python{version[0]}.{version[1]}"
    own = sorted(Path.home().glob(f".pyenv/versions/{version[0]}.{version[1]}.*/bin/python3"))
    return str(own[-1]) if own else shutil.which(name)


@pytest.mark.parametrize("version", _VERSIONS, ids=lambda version: ".".join(map(str, version)))
def test_by_every_python(version: tuple[int, int]) -> None:
    executable = _executable(version)
    if executable is None:
        pytest.skip("there is no such Python here")
    cases = python_cases()
    jobs = [_plain(case, job_of(case)) for case in cases]
    command = [executable, "-I", "-c", _PROGRAM, str(Path(worker.__file__).parents[1])]
    ran = subprocess.run(command, input=json.dumps(jobs), capture_output=True, text=True, timeout=100, check=True)
    outcomes = json.loads(ran.stdout.splitlines()[-1])
    wrong = {
        case.name: outcome
        for case, outcome in zip(cases, outcomes, strict=True)
        if outcome and (outcome["reason"] != "ok" or json.loads(outcome["result"]) != case.json("returns"))
    }
    assert wrong == {}
    assert sum(outcome is not None for outcome in outcomes) > 60


def _plain(case: Case, job: Job) -> dict[str, Any]:
    fields = {name: getattr(job, name) for name in ("source", "function", "arguments", "schema")}
    rest = {"mode": "call", "agent_state": "", "client": False, "limits": {"result": MIB}}
    return fields | rest | {"parameters": list(job.parameters), "needs": case.members.get("needs")}
