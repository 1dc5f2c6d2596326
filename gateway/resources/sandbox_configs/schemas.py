"""Sandboxes and environment variables."""

from gateway.openapi.schemas import OBJECT, TEXT, array, maybe, of, record
from loci.tool.v1 import environment_service_pb2

VARIABLES = array(record("MaskedVariable", {"key": TEXT, "value": TEXT}))
_HIDDEN = ("owner", "masked_value")
_VARIABLE = {"value": TEXT, "value_enc": maybe(TEXT), "description": maybe(TEXT)}
SECRET = of(
    "AgentEnvironmentVariable", environment_service_pb2.Variable.DESCRIPTOR, leave=_HIDDEN, **_VARIABLE, agent_id=TEXT
)
SANDBOX_VARIABLE = of(
    "SandboxEnvironmentVariable",
    environment_service_pb2.Variable.DESCRIPTOR,
    leave=_HIDDEN,
    **_VARIABLE,
    sandbox_config_id=TEXT,
    organization_id=TEXT,
)
SANDBOX_CONFIG = of(
    "SandboxConfigState", environment_service_pb2.SandboxConfig.DESCRIPTOR, config=OBJECT, organization_id=TEXT
)
