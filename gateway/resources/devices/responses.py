"""Remote devices as REST shows them: names as the reference has them, times in milliseconds since the epoch."""

from google.protobuf.timestamp_pb2 import Timestamp

from gateway.rest.convert import Rest, from_json
from loci.agent.v1 import device_service_pb2

# What the SDK knows; devices may say more.
MODES = frozenset({"default", "standard", "acceptEdits", "bypassPermissions", "unrestricted"})


def device(source: device_service_pb2.Device) -> Rest:
    """Returns a device; `connectionId` is null while it is not connected."""
    return {
        "id": source.id,
        "deviceId": source.device_id,
        "connectionName": source.name,
        "connectionId": source.connection_id if source.online else None,
        "organizationId": source.organization_id,
        "userId": source.user_id,
        "apiKeyOwner": None,
        "podId": None,
        "source": "local" if source.source == device_service_pb2.DEVICE_SOURCE_LOCAL else "remote",
        "connectedAt": _milliseconds(source.connected_at) if source.HasField("connected_at") else None,
        "lastHeartbeat": _milliseconds(source.heartbeat_at) if source.HasField("heartbeat_at") else None,
        "firstSeenAt": _milliseconds(source.first_seen_at),
        "lastSeenAt": _milliseconds(source.last_seen_at),
        "currentMode": source.current_mode if source.current_mode in MODES else None,
        "metadata": from_json(source.metadata_json),
    }


def _milliseconds(time: Timestamp) -> int:
    milliseconds: int = time.ToMilliseconds()
    return milliseconds
