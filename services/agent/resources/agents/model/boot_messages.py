"""The messages that an agent begins with where its client gives none. Pure. Source: LETTA V1 API, create agent."""

import json
from collections.abc import Callable
from datetime import datetime
from uuid import UUID

from services.agent.core.calls.offers import SENT, SPEAKING
from services.agent.core.messages import Call, Message, Part, Reasoning, Return, Role, Text
from services.agent.core.policy import POLICIES
from services.agent.core.turn import call_key
from services.agent.core.zones import zone

_THOUGHT = "I have just been started. I greet whoever comes, by the tool that speaks."
_GREETING = "Hello, I am here. What can I do for you?"
_NEVER = "Never (first login)"


def boot_messages(agent_type: str, timezone: str, now: datetime, new_id: Callable[[], UUID]) -> tuple[Message, ...]:
    """Returns a greeting and the user's first login, of no run; nothing for types that do not think in arguments.

    Models of the older types learn from it how to think and speak by a call.
    """
    if not POLICIES[agent_type].inner_thoughts:
        return ()

    def message(message_id: UUID, role: Role, *parts: Part) -> Message:
        return Message(message_id, role, parts, now)

    greeting_id = new_id()
    call_id = f"call_{greeting_id.hex[:24]}"
    arguments = json.dumps({"message": _GREETING})
    greeting = Call(call_key(greeting_id, 0, 0), call_id, SPEAKING, arguments)
    return (
        message(greeting_id, "assistant", Reasoning(_THOUGHT, prompted=True), greeting),
        message(new_id(), "tool", Return(call_id, SPEAKING, SENT)),
        message(new_id(), "user", Text(_login(now.astimezone(zone(timezone))))),
    )


def _login(now: datetime) -> str:
    return json.dumps({"type": "login", "last_login": _NEVER, "time": f"{now:%Y-%m-%d %I:%M:%S %p %Z%z}"})
