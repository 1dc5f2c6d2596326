"""Sandboxes and environment variables."""

from gateway.openapi.schemas import NULL, OBJECT, TEXT, array, maybe, of, record
from loci.tool.v1 import sandbox_config_service_pb2

VARIABLES = array(record("MaskedVariable", {"key": TEXT, "value": TEXT}))
_HIDDEN = ("owner",)
_VARIABLE = {"value_enc": TEXT, "description": maybe(TEXT), "organization_id": TEXT}
SECRET = of(
    "AgentEnvironmentVariable",
    sandbox_config_service_pb2.Variable.DESCRIPTOR,
    leave=_HIDDEN,
    **_VARIABLE,
    **dict.fromkeys(("created_by_id", "last_updated_by_id", "created_at", "updated_at"), NULL),
    agent_id=TEXT,
)
SANDBOX_VARIABLE = of(
    "SandboxEnvironmentVariable",
    sandbox_config_service_pb2.Variable.DESCRIPTOR,
    leave=_HIDDEN,
    **_VARIABLE,
    sandbox_config_id=TEXT,
)
SANDBOX_CONFIG = of(
    "SandboxConfigState", sandbox_config_service_pb2.SandboxConfig.DESCRIPTOR, config=OBJECT, organization_id=TEXT
)
