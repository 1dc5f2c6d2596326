"""The secrets of a server, the masks that clients see instead, and masks that they write back. Pure."""

from collections.abc import Collection, Mapping
from dataclasses import replace

from services.common.core.refusals import Refused
from services.common.core.secret_names import (
    MASK,
    mask_arguments,
    secrets_of_arguments,
    secrets_of_value,
    unmask_arguments,
)
from services.tool_runner.core import network_policy
from services.tool_runner.mcp_servers.model import Http, Stdio, Transport, refusal


def secrets_of(transport: Transport) -> tuple[str, ...]:
    """Returns the texts that results, output and problems hide: those that are secret by name, by form or by use."""
    if isinstance(transport, Http):
        named = {"token": transport.auth_token, **transport.headers}
        return tuple(secret for name, value in named.items() for secret in secrets_of_value(name, value))
    held = [value for name, value in transport.env.items() if name in _held_back(transport.network)]
    of_env = [secret for name, value in transport.env.items() for secret in secrets_of_value(name, value)]
    of_args = [secret for secrets in secrets_of_arguments(transport.args) for secret in secrets]
    return (*held, *of_env, *of_args)


def _held_back(network: str) -> Collection[str]:
    """Returns the variables whose values the program's `network` keeps out of the sandbox."""
    try:
        return network_policy.parse(network).secrets.keys()
    except Refused:
        return ()


def mask(transport: Transport) -> Transport:
    """Returns it as clients see it."""
    if isinstance(transport, Http):
        hidden = dict.fromkeys(transport.headers, MASK)
        return replace(transport, auth_token=MASK if transport.auth_token else "", headers=hidden)
    return replace(transport, args=mask_arguments(transport.args), env=dict.fromkeys(transport.env, MASK))


def unmask(update: Transport, present: Transport) -> Transport:
    """Returns what was written, with what is there where it says the mask. Raises Refused for a mask of nothing."""
    if isinstance(update, Http):
        there = present if isinstance(present, Http) else None
        token = _unmask_value("auth_token", update.auth_token, there.auth_token if there else "")
        headers = _unmask_all("custom_headers", update.headers, there.headers if there else {})
        return replace(update, auth_token=token, headers=headers)
    program = present if isinstance(present, Stdio) else Stdio(command="")
    args = unmask_arguments(update.args, program.args)
    if args is None:
        raise refusal("args", f"{MASK} stands for a value that is there, and there is none at that place")
    return replace(update, args=args, env=_unmask_all("env", update.env, program.env))


def _unmask_value(where: str, update: str, present: str) -> str:
    if update != MASK:
        return update
    if not present:
        raise refusal(where, f"{MASK} stands for a value that is there, and there is none")
    return present


def _unmask_all(where: str, update: Mapping[str, str], present: Mapping[str, str]) -> dict[str, str]:
    return {name: _unmask_value(f"{where}.{name}", value, present.get(name, "")) for name, value in update.items()}
