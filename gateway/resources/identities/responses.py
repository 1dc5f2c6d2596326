"""Identities and groups as REST."""

from gateway.rest.convert import Rest, from_json, to_rest
from loci.agent.v1 import group_pb2, identity_pb2

# The reference does not show when they were made.
_TIMES = frozenset({"created_at", "updated_at"})
# What its manager type asks for, and what is known once its turns are.
_OF_MANAGERS = (
    "max_turns",
    "termination_token",
    "sleeptime_agent_frequency",
    "max_message_buffer_length",
    "min_message_buffer_length",
    "turns_counter",
    "last_processed_message_id",
)


def identity(found: identity_pb2.Identity) -> Rest:
    """An identity; those of an agent come without agents and blocks."""
    rest = to_rest(found, leave=_TIMES)
    return rest | {"properties": rest["properties"] or []}


def group(found: group_pb2.Group) -> Rest:
    """A group, its manager's settings beside its own."""
    rest = to_rest(found, leave=_TIMES | {"manager_settings"})
    return rest | dict.fromkeys(_OF_MANAGERS) | (from_json(found.manager_settings_json) or {})
