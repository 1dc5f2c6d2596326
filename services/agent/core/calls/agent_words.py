"""What agents that speak to agents are told, and what counts as a reply. Pure."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from services.agent.core.calls.arguments import Problem, parse
from services.agent.core.calls.offers import SPEAKING
from services.agent.core.facts import Failure, StopReason, Usage
from services.agent.core.messages import Call, Part, Text
from services.agent.core.ports_agents import AgentName

_COMPLETE = (StopReason.END_TURN, StopReason.TOOL_RULE, StopReason.MAX_STEPS)


@dataclass(frozen=True, slots=True)
class Answer:
    """How a run ended that another one waited for: what its agent said, and why it ended."""

    run_id: UUID
    said: tuple[str, ...]
    stop_reason: StopReason
    failure: Failure | None = None
    usage: Usage = field(default_factory=Usage)
    steps: int = 0
    calls: tuple[Call, ...] = ()

    @property
    def text(self) -> str:
        """All that the agent said."""
        return "\n\n".join(self.said)

    @property
    def waiting(self) -> tuple[Call, ...]:
        """The calls that wait for the client; none where the run ended for another reason."""
        waits = self.stop_reason is StopReason.REQUIRES_APPROVAL
        return tuple(call for call in self.calls if call.gate and waits)

    @property
    def problem(self) -> str:
        """Why this is no reply, as a sentence; empty for a reply."""
        if self.stop_reason is StopReason.REQUIRES_APPROVAL:
            return f"It waits for a person to answer a call that it made (run-{self.run_id}), so there is no reply yet."
        if self.stop_reason not in _COMPLETE:
            why = self.stop_reason.value if self.failure is None else self.failure.message
            return f"Its turn (run-{self.run_id}) ended without a reply: {why}"
        return "" if self.said else f"It ended its turn (run-{self.run_id}) without a word."


def spoken(parts: Iterable[Part]) -> list[str]:
    """Returns the texts that an agent says in a piece of its own message, also those that it says by a call."""
    texts = []
    for part in parts:
        match part:
            case Text(text=text) if text.strip():
                texts.append(text)
            case Call(name=name, arguments=arguments) if name == SPEAKING:
                values = parse(arguments)
                said = "" if isinstance(values, Problem) else values.get("message")
                texts += [said] if isinstance(said, str) and said.strip() else []
    return texts


def addressed(text: str, sender: AgentName, *, waits: bool) -> str:
    """Returns a message between agents: who says it, and whether that one waits for a reply."""
    then = (
        "It waits for you: what you say in this turn is your reply."
        if waits
        else "It does not wait. To answer it, send it a message of your own, if you have a tool for that."
    )
    return f"[Message from another agent, {sender.name} (agent-{sender.id}). {then}]\n\n{text}"


def replies_to_json(agents: Sequence[AgentName], replies: Sequence[str | Problem]) -> str:
    """Returns the replies of several agents, or why there are none, as JSON."""
    return json.dumps(
        [
            {"agent_id": f"agent-{agent.id}", "agent_name": agent.name}
            | ({"error": " ".join(reply.sentences)} if isinstance(reply, Problem) else {"reply": reply})
            for agent, reply in zip(agents, replies, strict=True)
        ],
        ensure_ascii=False,
    )
