"""Secrets that stay outside of the sandbox: the tool holds placeholders, the proxy puts the values in. Pure."""

import secrets as randomness
from collections.abc import Mapping
from dataclasses import dataclass, field

from services.tool_runner.core.network_policy import Policy, Secret

PREFIX = "loci-secret-"


@dataclass(frozen=True, slots=True)
class HeldSecret:
    """One secret of a call: what the tool holds, what it stands for, and where it may go."""

    placeholder: str
    value: str = field(repr=False)
    rule: Secret


def split(environment: Mapping[str, str], policy: Policy) -> tuple[dict[str, str], tuple[HeldSecret, ...]]:
    """Returns the variables for the sandbox, with placeholders for secrets of the policy, and those secrets."""
    held = {
        name: HeldSecret(PREFIX + randomness.token_hex(16), environment[name], rule)
        for name, rule in policy.secrets.items()
        if environment.get(name)
    }
    variables = {name: held[name].placeholder if name in held else value for name, value in environment.items()}
    return variables, tuple(held.values())
