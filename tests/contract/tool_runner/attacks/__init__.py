"""Everything that tool code may try; see `attack.py`."""

from tests.contract.tool_runner.attacks.attack import OWNED, Attack
from tests.contract.tool_runner.attacks.files import FILES
from tests.contract.tool_runner.attacks.host_files import HOST_FILES
from tests.contract.tool_runner.attacks.kernel import KERNEL
from tests.contract.tool_runner.attacks.network import NETWORK
from tests.contract.tool_runner.attacks.resources import RESOURCES
from tests.contract.tool_runner.attacks.results import RESULTS

__all__ = ["ATTACKS", "GROUPS", "OWNED", "Attack"]

GROUPS: dict[str, tuple[Attack, ...]] = {
    "host files": HOST_FILES,
    "network": NETWORK,
    "kernel": KERNEL,
    "resources": RESOURCES,
    "results": RESULTS,
    "files": FILES,
}
ATTACKS: tuple[Attack, ...] = tuple(attack for group in GROUPS.values() for attack in group)
