"""What a member of a group is told when it speaks, and the tools that it has for that turn. Pure."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from services.agent.core.facts import ClientTool
from services.agent.core.groups.plan import GroupPlan
from services.agent.core.groups.policy import ASK_MEMBERS, CHOOSE, HAND_OVER
from services.agent.core.messages import Image, Message, Part, Text, gated_calls

# Type of these tools; the agent service runs them.
GROUP_TOOL = "loci_group"
# They end the turn of who calls them.
ENDING = frozenset({CHOOSE, HAND_OVER})
YOUR_TURN = "It is your turn."
# What a member is told at most, or it would not fit its window.
MOST_MESSAGES, MOST_CHARS = 200, 40_000
LEFT_OUT = "(What was said before is left out.)"


def told(history: Sequence[Message], agent_id: UUID) -> tuple[Part, ...]:
    """Returns what was said in the group since this agent last spoke there, with the speakers' names; the newest of it
    where that is much.
    """
    since: list[Message] = []
    chars, is_cut = 0, False
    for message in reversed(history):
        if message.role == "assistant" and message.sender_id == f"agent-{agent_id}":
            break
        if message.role in ("user", "assistant", "system"):
            chars += len(_text(message))
            is_cut = bool(since) and (chars > MOST_CHARS or len(since) == MOST_MESSAGES)
            if is_cut:
                break
            since.append(message)
    since.reverse()
    lines = [f"[{message.name or message.role}] {text}" for message in since if (text := _text(message))]
    if len(since) == 1 and since[0].role == "user" and not since[0].name:
        lines = [_text(since[0])]
    pictures = [part for message in since for part in message.parts if isinstance(part, Image)]
    words = "\n\n".join(filter(None, [*([LEFT_OUT] if is_cut else []), *lines]))
    return (*((Text(words),) if words else ()), *pictures)


def was_given_up(history: Sequence[Message], agent_id: UUID) -> bool:
    """Returns whether the group waits no longer for the answer to calls that this agent made when it last spoke."""
    given_up = False
    for message in reversed(history):
        if message.role == "tool":
            given_up = True
        elif message.role == "assistant" and message.sender_id == f"agent-{agent_id}":
            return given_up and bool(gated_calls(message))
    return False


def instructions(plan: GroupPlan, agent_id: UUID, tool: str) -> str:
    """Returns what is added to the prompt of a member for its turn."""
    member = plan.member(agent_id)
    others = ", ".join(name for name, each in zip(plan.names, plan.members, strict=True) if each.id != agent_id)
    match tool:
        case "ask_members":
            return (
                f"You lead a group of agents: {others}. Call {ASK_MEMBERS} to ask them; they do not hear one another."
            )
        case "choose_next_speaker":
            return (
                f"You lead a group of agents: {others}. Say who speaks next by calling {CHOOSE}. When the conversation "
                f"has come to its end, say {plan.termination_token} and call nothing."
            )
        case "hand_over":
            return f"You share this conversation with {others}. Call {HAND_OVER} when one of them should go on."
    name = "" if member is None else f" as {member.name}"
    return f"You speak{name} in a group with {others}. What the others say comes with their names."


def tools_for(plan: GroupPlan, agent_id: UUID, tool: str) -> tuple[ClientTool, ...]:
    """Returns the tools of a turn; who can be named is an enum, so that no name is invented."""
    names = [name for name, each in zip(plan.names, plan.members, strict=True) if each.id != agent_id]
    if not tool or not names:
        return ()
    name: dict[str, Any] = {"type": "string", "enum": names}
    match tool:
        case "ask_members":
            message = {"type": "string", "description": "What you want to say or ask."}
            properties = {"message": message, "name": name | {"description": "Whom to ask; leave it out for all."}}
            text, required = "Say something to a member of your group, or to all, and get their answers.", ["message"]
        case "choose_next_speaker":
            properties, required = {"name": name}, ["name"]
            text = "Say who speaks next. Your turn ends with it."
        case _:
            properties, required = {"name": name}, ["name"]
            text = "Hand the conversation over to another agent, which goes on with it. Your turn ends with it."
    return (ClientTool(tool, text, {"type": "object", "properties": properties, "required": required}),)


def _text(message: Message) -> str:
    return "\n".join(part.text for part in message.parts if isinstance(part, Text))
