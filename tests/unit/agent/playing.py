"""Turns played through the pure functions alone: a script says what the model replies and what tools return."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import orjson

from services.agent.core.calls.offers import Offer, offer
from services.agent.core.calls.replies import reply_parts
from services.agent.core.calls.tool_plans import plan
from services.agent.core.facts import (
    Action,
    CallModel,
    Compact,
    Compacted,
    Fact,
    Finish,
    ModelReplied,
    Options,
    Remind,
    Reminded,
    RunEnded,
    RunTools,
    Settings,
    Speak,
    StopReason,
    ToolsReturned,
    Usage,
)
from services.agent.core.messages import Call, Message, Part, Reasoning, Return, Role, Text
from services.agent.core.ports import ToolInfo
from services.agent.core.rules.tool_rules import ToolRule
from services.agent.core.turn import Turn, begin_turn, decide, evolve, reminder, step_id
from services.agent.core.window.compaction import CompactionStats, cuts

NOW = datetime(2026, 1, 1, tzinfo=UTC)
WINDOW = 32_000


def run_id(number: int) -> UUID:
    return UUID(int=(0x0189 << 112) + number)


def message(number: int, role: Role, *parts: Part, run: int = 1) -> Message:
    return Message(UUID(int=number << 64), role, parts, NOW, run_id(run))


def call(name: str, /, **arguments: Any) -> Call:
    """A call as a model makes it; the tool's name is its id."""
    return Call("", name, name, orjson.dumps(arguments).decode())


def tool(name: str, *, parallel: bool = False, **properties: Any) -> ToolInfo:
    """A tool with these arguments, none of them required."""
    schema = {"type": "object", "properties": {name: {"type": kind} for name, kind in properties.items()}}
    return ToolInfo(UUID(int=hash(name) & 0xFFFF), name, "custom", "", schema, parallel)


TOOLS = tuple(tool(name, x="integer") for name in "abcd")


def settings(*rules: ToolRule, agent_type: str = "letta_v1_agent", **options: Any) -> Settings:
    """An agent with these rules, whose model may make several calls at once; `options` are the request's."""
    model_settings = options.pop("model_settings", {"parallel_tool_calls": True})
    return Settings(
        1,
        "loci/demo",
        "loci/hash",
        "Be kind.",
        WINDOW,
        agent_type=agent_type,
        tool_rules=rules,
        model_settings=model_settings,
        options=Options(**options),
    )


@dataclass(frozen=True)
class Reply:
    """A model's reply; `tokens` is the size of the context that it reports."""

    parts: tuple[Part, ...]
    finish: str = "stop"
    tokens: int = 10


Script = str | Part | Sequence[Part] | Reply


def reply(script: Script) -> Reply:
    """A reply from its short form: a text, a call, or several parts; letters a to d in angle brackets are calls."""
    match script:
        case Reply():
            return script
        case str():
            calls = script.startswith("<")
            return Reply(tuple(map(call, script.strip("<>"))) if calls else (Text(script),) if script else ())
        case Text() | Call() | Reasoning():
            return Reply((script,))
        case _:
            return Reply(tuple(script))  # type: ignore[arg-type]


@dataclass
class Played:
    """A run that was played, and what was seen on the way."""

    # As it began.
    start: Turn
    turn: Turn
    facts: list[Fact] = field(default_factory=list)
    offers: list[Offer] = field(default_factory=list)
    # Calls that reached a runner, with their arguments.
    ran: list[Call] = field(default_factory=list)
    trace: list[str] = field(default_factory=list)

    @property
    def end(self) -> StopReason | None:
        return None if self.turn.ended is None else self.turn.ended.stop_reason

    @property
    def shown(self) -> str:
        """The actions in short: M model, T tools, C compact, R remind (h: heartbeat), then the end."""
        return " ".join(self.trace)

    @property
    def returns(self) -> list[Return]:
        parts = (part for fact in self.facts if isinstance(fact, ToolsReturned) for part in fact.message.parts)
        return [part for part in parts if isinstance(part, Return)]

    @property
    def reminders(self) -> list[str]:
        return [part.text for fact in self.facts if isinstance(fact, Reminded) for part in _texts(fact.message)]


class Player:
    """Plays runs of one conversation, one after the other."""

    def __init__(
        self,
        agent: Settings,
        tools: Sequence[ToolInfo] = TOOLS,
        returns: Mapping[str, str | Return] | None = None,
        *,
        compacts: bool = True,
    ) -> None:
        self.agent = agent
        self.history: tuple[Message, ...] = ()
        self._tools = tools
        self._returns = returns or {}
        self._compacts = compacts
        self._runs = 0
        self._messages = 0

    def say(self, *parts: Part | str, role: Role = "user") -> Message:
        """A new message of the client."""
        return self._message(role, tuple(Text(part) if isinstance(part, str) else part for part in parts))

    def run(self, script: Iterable[Script], *said: Message, most: int = 60) -> Played:
        """One run that begins with these messages, or with a greeting; with nothing where a compaction is asked for."""
        self._runs += 1
        number = run_id(self._runs)
        greeting = () if self.agent.options.compact is not None else (self.say("hi"),)
        sent = tuple(replace(each, run_id=number) for each in said or greeting)
        start = begin_turn(number, self.agent, self.history, sent)
        played = Played(start, start)
        replies = iter(script)
        for _ in range(most):
            fact = self._perform(played, decide(played.turn), replies)
            played.facts.append(fact)
            played.turn = evolve(played.turn, fact)
            if isinstance(fact, RunEnded):
                self.history = played.turn.history
                return played
        raise AssertionError(f"the turn never ends: {played.shown}")

    def _perform(self, played: Played, action: Action, replies: Iterable[Script]) -> Fact:
        turn, trace = played.turn, played.trace
        match action:
            case CallModel(step=step, attempt=attempt):
                trace.append("M")
                made = reply(next(iter(replies)))
                offered = offer(turn, self._tools)
                played.offers.append(offered)
                parts = reply_parts(made.parts, settings=turn.settings, offered=offered, run_id=turn.run_id, step=step)
                answer = replace(self._message("assistant", parts), run_id=turn.run_id)
                names = tuple(each.name for each in offered.tools) if turn.settings.tool_rules else ()
                return ModelReplied(step, attempt, answer, Usage(made.tokens, 0), made.finish, names)
            case RunTools(step=step):
                trace.append("T")
                planned = plan(turn, action, self._tools)
                played.ran += [one for one in planned.calls if isinstance(one, Call)]
                parts = tuple(self._return(one) if isinstance(one, Call) else one for one in planned.calls)
                answer = replace(self._message("tool", parts), run_id=turn.run_id, step_id=step_id(turn.run_id, step))
                return ToolsReturned(step, answer, planned.invalid)
            case Compact(trigger=trigger):
                trace.append("C")
                count = len(turn.history)
                stats = CompactionStats(trigger, 0, 5, WINDOW, count, count)
                summary = replace(self._message("summary", (Text("so far"),)), run_id=turn.run_id)
                places = cuts(turn.history) if self._compacts else ()
                kept = turn.history[places[-1]].id if places else None
                return Compacted(trigger, None if kept is None else summary, kept, stats)
            case Remind(kind=kind):
                trace.append("h" if kind == "heartbeat" else "R")
                return reminder(turn, action)
            case Speak():
                raise AssertionError("no group plays here")
            case Finish(stop_reason=stop_reason, failure=failure):
                trace.append(stop_reason.value)
                return RunEnded(stop_reason, failure)

    def _return(self, made: Call) -> Return:
        returned = self._returns.get(made.name, "done")
        if isinstance(returned, Return):
            return replace(returned, call_id=made.id, name=made.name)
        return Return(made.id, made.name, returned)

    def _message(self, role: Role, parts: tuple[Part, ...]) -> Message:
        self._messages += 1
        return message(self._messages, role, *parts)


def play(agent: Settings, *script: Script, **player: Any) -> Played:
    """One run of a new conversation."""
    return Player(agent, **player).run(script)


def _texts(one: Message) -> list[Text]:
    return [part for part in one.parts if isinstance(part, Text)]
