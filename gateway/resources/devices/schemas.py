"""Environments (remote devices)."""

from gateway.openapi.schemas import FLAG, OBJECT, TEXT, WHOLE, array, choice, maybe, record

REGISTERED = record("RegisteredEnvironment", {"connectionId": TEXT, "wsUrl": TEXT, "supportsSplitStatusChannels": FLAG})
ENVIRONMENT = record(
    "Environment",
    {
        "id": TEXT,
        "deviceId": TEXT,
        "connectionName": TEXT,
        "connectionId": maybe(TEXT),
        "organizationId": TEXT,
        "userId": TEXT,
        "apiKeyOwner": maybe(TEXT),
        "podId": maybe(TEXT),
        "source": choice("local", "remote"),
        "connectedAt": maybe(WHOLE),
        "lastHeartbeat": maybe(WHOLE),
        "firstSeenAt": WHOLE,
        "lastSeenAt": WHOLE,
        "currentMode": maybe(TEXT),
        "metadata": OBJECT,
    },
)
ENVIRONMENTS = record("Environments", {"connections": array(ENVIRONMENT), "hasNextPage": FLAG})
SENT = record("SentToEnvironment", {"success": FLAG, "message": TEXT})
