"""Variables and sandbox settings: Protobuf to plain values and back."""

from collections.abc import Sequence
from uuid import UUID

from loci.common.v1 import page_pb2
from loci.tool.v1 import environment_service_pb2 as wire
from services.common.codec import Codec
from services.common.core.paging import Page
from services.common.core.refusals import Refused
from services.common.errors import InvalidArgument
from services.common.ids import from_public, to_public
from services.common.page_requests import allow, page_by_id
from services.tool_runner.environments.model import Change, Draft, Owner, SandboxConfig, Scope, Variable
from services.tool_runner.tools.model import DEFAULT_SIZE

_CONFIGS = Codec(SandboxConfig, wire.SandboxConfig)
_VARIABLES = Codec(Variable, wire.Variable, leave=("id", "owner", "size"))
_MOST_OWNERS = 1_000
_PREFIXES = {Scope.AGENT: "agent", Scope.TOOL: "tool", Scope.SANDBOX: "sandbox"}
_FIELDS = {Scope.AGENT: "agent_id", Scope.TOOL: "tool_id", Scope.SANDBOX: "sandbox_config_id"}
_CHANGING = ("key", "value", "description")


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


def draft(message: wire.VariableDraft) -> Draft:
    """Returns what a client says."""
    return Draft(message.key, message.value, message.description)


def change(message: wire.VariableDraft, mask: Sequence[str]) -> Change:
    """Returns the fields of the mask. Raises InvalidArgument (UPDATE_MASK_INVALID)."""
    for name in mask:
        if name not in _CHANGING:
            raise InvalidArgument(f"a variable has no field {name[:80]!r} to update", reason="UPDATE_MASK_INVALID")
    return Change(**{name: getattr(message, name) for name in mask})


def config_id(text: str) -> UUID:
    """Returns the UUID of `sandbox-<uuid>`."""
    return from_public("sandbox", text)


def variable_id(text: str) -> UUID:
    """Returns the UUID of `sandbox-env-<uuid>`."""
    return from_public("sandbox-env", text)


def page(request: page_pb2.PageRequest, prefix: str) -> Page:
    """Returns the page; the cursor is an id with `prefix`. Raises InvalidArgument (INVALID_ID), Refused."""
    allow(request, "page_size", "after")
    return page_by_id(request, prefix, DEFAULT_SIZE, ascending=True)


def variable_message(variable: Variable, masked_value: str) -> wire.Variable:
    """Returns a stored variable."""
    scope = variable.owner.scope
    return _VARIABLES.encode(
        variable,
        id=to_public("sandbox-env" if scope is Scope.SANDBOX else "agent-env", variable.id),
        owner=wire.Owner(**{_FIELDS[scope]: to_public(_PREFIXES[scope], variable.owner.id)}),
        masked_value=masked_value,
    )


def config_message(config: SandboxConfig) -> wire.SandboxConfig:
    """Returns the message of stored settings."""
    return _CONFIGS.encode(config)
