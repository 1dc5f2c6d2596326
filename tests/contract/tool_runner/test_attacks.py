"""Every attack in every sandbox: none succeeds, each ends in a clear way, and the next call works.

What a sandbox does not claim to stop is in `Attack.unclaimed` and in docs/sandboxes.md, and nowhere else.
"""

import asyncio
import json
import os
import secrets
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from services.tool_runner.core.job import MIB, ExitReason, Job, Limits, Result
from services.tool_runner.core.ports import Sandbox
from tests.contract.tool_runner.attacks import ATTACKS, GROUPS, OWNED, Attack
from tests.contract.tool_runner.folders import open_folder

SECRET = f"host-only-{secrets.token_hex(8)}"
_PLAIN = Job("def tool():\n    import os\n    return sorted(os.listdir('/work') + os.listdir('/tmp'))", "tool", {})


@pytest.fixture(scope="module")
def given() -> Iterator[dict[str, Any]]:
    """Things on the host to be attacked; see `attacks.py`."""
    with (
        open_folder() as folder,
        socket.socket() as port,
        socket.socket(socket.AF_UNIX) as named,
        socket.socket(socket.AF_UNIX) as unnamed,
    ):
        secret_file = folder / "secret"
        secret_file.write_text(SECRET)
        secret_file.chmod(0o644)
        address, abstract = str(folder / "socket"), f"loci-{secrets.token_hex(4)}"
        port.bind(("0.0.0.0", 0))
        named.bind(address)
        unnamed.bind(f"\0{abstract}")
        os.chmod(address, 0o777)
        for listener in (port, named, unnamed):
            listener.listen()
        yield {
            "secret_file": str(secret_file),
            "port": port.getsockname()[1],
            "abstract": abstract,
            "sockets": [address],
        }


def limits(attack: Attack) -> Limits:
    return Limits(
        seconds=attack.seconds, memory=attack.memory_mib * MIB, processes=48, disk=8 * MIB, file_bytes=4 * MIB
    )


def test_there_are_at_least_sixty() -> None:
    assert len({attack.source for attack in ATTACKS}) == len(ATTACKS) >= 60


@pytest.mark.timeout(400)
@pytest.mark.parametrize("group", GROUPS)
async def test_attacks_fail(attacked_sandbox: Sandbox, group: str, given: dict[str, Any]) -> None:
    # One sandbox for all of a group: a new one for each would cost more than the attacks.
    problems = {attack.name: await problem(attacked_sandbox, attack, given) for attack in GROUPS[group]}
    assert {name: said for name, said in problems.items() if said} == {}


async def problem(sandbox: Sandbox, attack: Attack, given: dict[str, Any]) -> str:
    """Returns what is wrong with how the sandbox took the attack; "" for nothing."""
    if sandbox.name in attack.unclaimed:
        return ""
    async with asyncio.timeout(60):
        result = await sandbox.run(Job(attack.source, "tool", {"given": given}, {}, limits(attack)))
    wrong = {
        "it succeeded": owned(result),
        "it ended another way": result.reason not in attack.ends,
        "what went wrong is not said": (result.reason is ExitReason.OK) != (result.error is None),
        "a file of the host came out": any(b"root:" in file.content for file in result.files),
        "a file's name climbs": any(".." in file.name.split("/") for file in result.files),
        "too many files": len(result.files) > limits(attack).files,
    }
    after = await sandbox.run(_PLAIN)
    wrong["the next call finds traces, or nothing works"] = (after.reason, after.result) != (ExitReason.OK, "[]")
    found = [said for said, is_so in wrong.items() if is_so]
    return f"{', '.join(found)}: {str(result)[:300]} {str(after)[:200]}" if found else ""


def owned(result: Result) -> bool:
    """Whether it got what it wanted: said by the tool itself, or the host's secret anywhere in what came out."""
    said = json.loads(result.result) if result.result else ""
    return (isinstance(said, str) and said.startswith(OWNED)) or SECRET in repr(result)
