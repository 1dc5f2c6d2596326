"""Settings of sandboxes and their variables. The tool runner, which reads them, refuses what is wrong."""

from gateway.rest.body import Body, Json
from gateway.rest.request_model import RequestModel
from loci.tool.v1 import sandbox_config_service_pb2 as wire
from services.common.fields import When

# Members of each kind, in the order in which they are asked.
_MEMBERS = {
    "local": {"sandbox_dir", "use_venv", "venv_name", "pip_requirements"},
    "e2b": {"timeout", "template", "pip_requirements"},
    "modal": {"timeout", "pip_requirements", "npm_requirements", "language"},
}


class SandboxConfig(Body):
    """Body of POST /sandbox-config and PATCH /sandbox-config/{id}. The kind follows from the members of `config`."""

    config: Json


class CreateVariable(RequestModel, of=wire.Variable, when=When.CREATION):
    """Body of POST /sandbox-config/{id}/environment-variable."""


class UpdateVariable(RequestModel, of=wire.Variable, when=When.CHANGE):
    """Body of PATCH /sandbox-config/environment-variable/{id}: only what is sent changes."""


def kind_of(config: Json) -> str:
    """Returns the kind that has most of the members; the first of several, `local` where nothing tells."""
    return max(_MEMBERS, key=lambda kind: len(_MEMBERS[kind] & config.keys()))
