"""Groups as REST."""

from gateway.rest.convert import Rest, from_json, to_rest
from loci.agent.v1 import group_pb2

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


def group(message: group_pb2.Group) -> Rest:
    """Returns a group, its manager's settings beside its own."""
    return to_rest(message) | dict.fromkeys(_OF_MANAGERS) | (from_json(message.manager_settings_json) or {})
