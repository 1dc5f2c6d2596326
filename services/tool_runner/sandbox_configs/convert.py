"""Variables and sandbox settings: Protobuf to plain values and back."""

from collections.abc import Sequence
from uuid import UUID

from loci.tool.v1 import sandbox_config_service_pb2 as wire
from services.common.codec import Codec
from services.common.core.refusals import Refused
from services.common.errors import InvalidArgument
from services.common.ids import from_public, to_public
from services.tool_runner.sandbox_configs.model import Owner, SandboxConfig, Scope, Variable, VariableSettings
from services.tool_runner.sandbox_configs.rules.variables import invalid_field

_CONFIGS = Codec(SandboxConfig, wire.SandboxConfig)
_VARIABLES = Codec(Variable, wire.Variable, leave=("id", "owner", "size"))
drafts = Codec(VariableSettings, wire.Variable, refuse=invalid_field)
_MOST_OWNERS = 1_000
_PREFIXES = {Scope.AGENT: "agent", Scope.TOOL: "tool", Scope.SANDBOX: "sandbox"}
_FIELDS = {Scope.AGENT: "agent_id", Scope.TOOL: "tool_id", Scope.SANDBOX: "sandbox_config_id"}


def owner(message: wire.Owner, *allowed: Scope) -> Owner:
    """Returns an owner of the `allowed` kinds (none: any). Raises Refused (ENVIRONMENT_INVALID), InvalidArgument."""
    kinds = allowed or tuple(Scope)
    for scope in kinds:
        if message.WhichOneof("owner") == _FIELDS[scope]:
            return Owner(scope, from_public(_PREFIXES[scope], getattr(message, _FIELDS[scope])))
    names = " or ".join(_FIELDS[scope] for scope in kinds)
    raise Refused("ENVIRONMENT_INVALID", f"the owner of the variables must be named by {names}")


def owners(messages: Sequence[wire.Owner]) -> list[Owner]:
    """Raises Refused, InvalidArgument."""
    if len(messages) > _MOST_OWNERS:
        raise InvalidArgument(f"ask for at most {_MOST_OWNERS} owners", reason="PAGE_SIZE_INVALID")
    return [owner(message) for message in messages]


def config_id(text: str) -> UUID:
    """Returns the UUID of `sandbox-<uuid>`."""
    return from_public("sandbox", text)


def variable_id(text: str) -> UUID:
    """Returns the UUID of `sandbox-env-<uuid>`."""
    return from_public("sandbox-env", text)


def variable_message(variable: Variable, value: str) -> wire.Variable:
    """Returns a stored variable; `value`: what is shown of its own."""
    scope = variable.owner.scope
    return _VARIABLES.encode(
        variable,
        id=to_public("sandbox-env" if scope is Scope.SANDBOX else "agent-env", variable.id),
        owner=wire.Owner(**{_FIELDS[scope]: to_public(_PREFIXES[scope], variable.owner.id)}),
        value=value,
    )


def config_message(config: SandboxConfig) -> wire.SandboxConfig:
    """Returns the message of stored settings."""
    return _CONFIGS.encode(config)
