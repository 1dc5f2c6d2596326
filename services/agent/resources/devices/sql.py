"""Statements about devices and what waits for them."""

from services.agent.resources.devices.ports import LOST_SECONDS

ONLINE = f"connected_at IS NOT NULL AND heartbeat_at > now() - interval '{LOST_SECONDS} seconds'"
_SHOWN = f"*, ({ONLINE}) AS online"
LONGEST_METADATA = 32_768

# $1 organization, $2 id, $3 its own name, $4 name, $5 user, $6 source, $7 connection, $8 metadata
REGISTER = f"""
INSERT INTO agent.devices AS d (organization_id, id, device_id, name, user_id, source, connection_id, metadata)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
ON CONFLICT (organization_id, device_id) DO UPDATE SET
    name = excluded.name, user_id = excluded.user_id, source = excluded.source, metadata = excluded.metadata,
    connected_at = CASE WHEN d.connection_id = excluded.connection_id THEN d.connected_at END,
    connection_id = excluded.connection_id, last_seen_at = now()
RETURNING {_SHOWN}
"""

GET = f"SELECT {_SHOWN} FROM agent.devices WHERE organization_id = $1 AND device_id = $2"
BY_CONNECTION = f"SELECT {_SHOWN} FROM agent.devices WHERE organization_id = $1 AND connection_id = $2"
LOCK = f"{BY_CONNECTION} FOR NO KEY UPDATE"

# $3 mode, null: as before, $4 metadata
UPDATE = f"""
UPDATE agent.devices SET current_mode = coalesce($3, current_mode), metadata = metadata || $4
WHERE organization_id = $1 AND connection_id = $2 AND octet_length((metadata || $4)::text) <= {LONGEST_METADATA}
RETURNING {_SHOWN}
"""

CONNECT = f"""
UPDATE agent.devices SET connected_at = clock_timestamp(), heartbeat_at = clock_timestamp(), last_seen_at = now()
WHERE organization_id = $1 AND connection_id = $2 RETURNING {_SHOWN}
"""
# $3 since when
DISCONNECT = """
UPDATE agent.devices SET connected_at = NULL, last_seen_at = now()
WHERE organization_id = $1 AND id = $2 AND connected_at = $3
"""

# $1 organizations, $2 devices, $3 since when
BEAT = """
UPDATE agent.devices d SET heartbeat_at = now(), last_seen_at = now()
FROM unnest($1::uuid[], $2::uuid[], $3::timestamptz[]) AS c (organization_id, id, since)
WHERE d.organization_id = c.organization_id AND d.id = c.id AND d.connected_at = c.since
"""
STIRRING = """
SELECT c.* FROM unnest($1::uuid[], $2::uuid[], $3::timestamptz[]) AS c (organization_id, device_id, since)
LEFT JOIN agent.devices d ON d.organization_id = c.organization_id AND d.id = c.device_id AND d.connected_at = c.since
WHERE d.id IS NULL OR EXISTS (
    SELECT FROM agent.device_messages m WHERE m.organization_id = c.organization_id AND m.device_id = c.device_id
)
"""

# $3 since when
IS_OVER = """
SELECT NOT EXISTS (SELECT FROM agent.devices WHERE organization_id = $1 AND id = $2 AND connected_at = $3)
"""
WAITING = "SELECT id FROM agent.device_messages WHERE organization_id = $1 AND device_id = $2 ORDER BY id"
READ = """
SELECT id, body, created_at FROM agent.device_messages
WHERE organization_id = $1 AND device_id = $2 AND id = ANY($3) ORDER BY id
"""
# $3 without these
COUNT = """
SELECT count(*) FROM agent.device_messages WHERE organization_id = $1 AND device_id = $2 AND NOT id = ANY($3)
"""
PUT = """
INSERT INTO agent.device_messages (organization_id, device_id, id, body) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING
"""
ACKNOWLEDGE = "DELETE FROM agent.device_messages WHERE organization_id = $1 AND device_id = $2 AND id = ANY($3)"
