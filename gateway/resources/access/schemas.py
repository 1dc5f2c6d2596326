"""Client-side access tokens, API keys, organizations and users."""

from gateway.openapi.schemas import FLAG, MOMENT, TEXT, array, choice, of, record
from loci.agent.v1 import access_service_pb2

_POLICY = record(
    "ClientTokenPolicy",
    {
        "version": choice("1"),
        "data": array(
            record(
                "AgentAccess",
                {
                    "type": choice("agent"),
                    "id": TEXT,
                    "access": array(choice("read_messages", "write_messages", "read_agent", "write_agent")),
                },
            )
        ),
    },
)
TOKEN = record("ClientToken", {"token": TEXT, "hostname": TEXT, "expiresAt": MOMENT, "policy": _POLICY})
TOKENS = record("ClientTokens", {"hasNextPage": FLAG, "tokens": array(TOKEN)})
API_KEY = of("ApiKey", access_service_pb2.ApiKey.DESCRIPTOR)
NEW_API_KEY = of("NewApiKey", access_service_pb2.ApiKey.DESCRIPTOR, key=TEXT)
ORGANIZATION = of("Organization", access_service_pb2.Organization.DESCRIPTOR, privileged_tools=FLAG)
USER = of("User", access_service_pb2.User.DESCRIPTOR, updated_at=MOMENT, is_deleted=FLAG)
