"""Client-side access tokens, API keys, organizations and users."""

from gateway.access.roles import Right
from gateway.openapi.schemas import FLAG, MOMENT, TEXT, array, by_name, choice, maybe, of, record
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
_RIGHTS = array(choice(*(right.name.lower() for right in Right if right not in (Right.OPEN, Right.ANYBODY))))
CALLER = record(
    "Caller",
    {
        **dict.fromkeys(("organization_id", "user_id", "role"), TEXT),
        "rights": _RIGHTS,
        "agents": maybe(by_name(_RIGHTS)),
        "has_credential": FLAG,
    },
)
WEBHOOK_SECRET = record("WebhookSecret", {"secret": TEXT})
USER = of("User", access_service_pb2.User.DESCRIPTOR, updated_at=MOMENT, is_deleted=FLAG)
