"""Groups."""

from gateway.openapi.schemas import TEXT, WHOLE, maybe, of
from loci.agent.v1 import group_pb2

GROUP = of(
    "Group",
    group_pb2.Group.DESCRIPTOR,
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
