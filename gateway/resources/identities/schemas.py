"""Identities and groups."""

from gateway.openapi.schemas import FLAG, NUMBER, OBJECT, TEXT, WHOLE, array, choice, maybe, of, record, some
from loci.agent.v1 import group_pb2, identity_pb2

_TIMES = ("created_at", "updated_at")
IDENTITY = of(
    "Identity",
    identity_pb2.Identity.DESCRIPTOR,
    leave=_TIMES,
    identity_type=choice("org", "user", "other"),
    properties=array(
        record(
            "PropertyOfIdentity",
            {
                "key": TEXT,
                "value": some(TEXT, FLAG, NUMBER, OBJECT),
                "type": choice("string", "number", "boolean", "json"),
            },
        )
    ),
)
IDENTITIES = record("Identities", {"data": array(IDENTITY), "next_cursor": maybe(TEXT), "has_more": FLAG})
GROUP = of(
    "Group",
    group_pb2.Group.DESCRIPTOR,
    leave=(*_TIMES, "manager_settings"),
    manager_type=choice("round_robin", "supervisor", "dynamic", "sleeptime", "voice_sleeptime", "swarm"),
    **dict.fromkeys(("termination_token", "last_processed_message_id"), maybe(TEXT)),
    **dict.fromkeys(
        (
            "max_turns",
            "sleeptime_agent_frequency",
            "max_message_buffer_length",
            "min_message_buffer_length",
            "turns_counter",
        ),
        maybe(WHOLE),
    ),
)
