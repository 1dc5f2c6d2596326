"""Settings of sandboxes and their variables. The tool runner, which reads them, refuses what is wrong."""

from typing import Annotated

from google.protobuf.field_mask_pb2 import FieldMask
from pydantic import Field

from gateway.rest.body import Body, Json, sent_fields
from loci.tool.v1 import environment_service_pb2 as wire

# Members of each kind, in the order in which they are asked.
_MEMBERS = {
    "local": {"sandbox_dir", "use_venv", "venv_name", "pip_requirements"},
    "e2b": {"timeout", "template", "pip_requirements"},
    "modal": {"timeout", "pip_requirements", "npm_requirements", "language"},
}
# pydantic would show the value of one that is wrong.
_HIDDEN = Field(repr=False)


class SandboxConfig(Body):
    """Body of POST /sandbox-config and PATCH /sandbox-config/{id}. The kind follows from the members of `config`."""

    config: Json


class CreateVariable(Body):
    """Body of POST /sandbox-config/{id}/environment-variable."""

    key: str
    value: Annotated[str, _HIDDEN]
    description: str | None = None


class UpdateVariable(Body):
    """Body of PATCH /sandbox-config/environment-variable/{id}: only what is sent changes."""

    key: str | None = None
    value: Annotated[str | None, _HIDDEN] = None
    description: str | None = None


def kind_of(config: Json) -> str:
    """Returns the kind that has most of the members; the first of several, `local` where nothing tells."""
    return max(_MEMBERS, key=lambda kind: len(_MEMBERS[kind] & config.keys()))


def create_request(sandbox_config_id: str, body: CreateVariable) -> wire.CreateVariableRequest:
    """Returns the request of CreateVariable."""
    draft = wire.VariableDraft(key=body.key, value=body.value, description=body.description or "")
    return wire.CreateVariableRequest(sandbox_config_id=sandbox_config_id, variable=draft)


def update_request(variable_id: str, body: UpdateVariable) -> wire.UpdateVariableRequest:
    """Returns the request of UpdateVariable."""
    sent = sent_fields(body)
    return wire.UpdateVariableRequest(
        id=variable_id, variable=wire.VariableDraft(**sent), update_mask=FieldMask(paths=list(sent))
    )
