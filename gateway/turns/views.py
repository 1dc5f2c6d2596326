"""How a client wants to see a turn. It is kept with the run: whoever goes on with that sees it alike."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import orjson

from gateway.resources.messages.requests import AttachRun, SendMessages, TurnFields
from gateway.resources.messages.responses import answer_types
from gateway.resources.runs.responses import view_of
from gateway.sockets.frames import Approve, Send
from gateway.turns.deltas import Deltas
from gateway.turns.speech import SpeechRenderer


@dataclass(frozen=True)
class View:
    """tokens: pieces of messages as they come. types: the message types to show, None for all; compaction: those of
    compactions, too. spoken: the tool by which older agents speak, and its argument, shown as messages; None: as calls.
    """

    tokens: bool = True
    types: Sequence[str] | None = None
    compaction: bool = False
    spoken: tuple[str, str] | None = ("send_message", "message")

    @classmethod
    def of(cls, body: TurnFields) -> "View":
        """Returns the view that a request for a turn asks for."""
        tool, argument = body.assistant_message_tool_name, body.assistant_message_tool_kwarg
        return cls(
            tokens=body.stream_tokens if isinstance(body, SendMessages | Send | Approve) else True,
            # An empty list filters nothing, as in the reference.
            types=body.include_return_message_types or None,
            compaction=body.include_compaction_messages,
            spoken=(tool, argument) if body.use_assistant_message else None,
        )

    @classmethod
    def joined(cls, stored: str, body: AttachRun) -> "View":
        """Returns the view of the request that began a run, as `json` has it, but for what the body says otherwise."""
        # Names that another release knows are left out.
        fields = {name: value for name, value in view_of(stored).items() if name in cls.__annotations__}
        overrides = {"tokens": body.stream_tokens, "compaction": body.include_compaction_messages}
        fields |= {name: value for name, value in overrides.items() if value is not None}
        if body.use_assistant_message is not None:
            fields["spoken"] = (fields.get("spoken") or cls.spoken) if body.use_assistant_message else None
        return cls(**fields)

    @property
    def json(self) -> str:
        """Returns the form in which it is stored."""
        return orjson.dumps(asdict(self)).decode()

    @property
    def shown_types(self) -> frozenset[str]:
        """Returns the message types to pass on."""
        return answer_types(self.types, compaction=self.compaction)

    def deltas(self, *, resumed: bool = False) -> Deltas | None:
        """Returns the deltas of a stream; None where whole messages are asked for."""
        return Deltas(tail_only=resumed) if self.tokens else None

    def speech(self, *, resumed: bool = False) -> SpeechRenderer | None:
        """Returns the renderer of older agents' speech; None where it is shown as calls."""
        return SpeechRenderer(*self.spoken, resumed=resumed) if self.spoken else None
