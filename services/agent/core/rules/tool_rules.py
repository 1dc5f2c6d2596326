"""Tool rules: what the model may call next, what ends a turn, what waits for approval. Pure.

Source: the reference API's nine rule types, as its newest loop applies them. What wins over what:

1. Approval comes before everything that follows a call: a tool that needs it does not run, and so counts for no
   other rule, before it is given.
2. While nothing was called in this request, run_first alone decides, whatever the other rules say of its tools. Its
   tools that are not attached do not count; where none is attached, the other rules decide.
3. Otherwise a tool is allowed where every other rule allows it: children and conditional rules whose tool was the
   last one called, parent rules always, and maximum counts.
4. Where that leaves nothing, all attached tools are allowed and no call is forced: rules that contradict one another
   must not stop an agent, nor make it call something for ever.
5. Arguments given by a rule win over the model's; of two rules that give the same argument, the later one.
6. At the end of a step required_before_exit wins over exit_loop, and exit_loop over all that would go on.

A failed call counts as a call, for every rule: a tool that always fails must not hold a turn.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, assert_never

from services.agent.core.rules.rule_returns import match_case


@dataclass(frozen=True, slots=True)
class RunFirst:
    """A request's first call is of this tool, or of another with such a rule; `args` override the model's."""

    tool_name: str
    args: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Children:
    """After this tool only `children` may be called; `child_args` override the model's, by the child's name."""

    tool_name: str
    children: tuple[str, ...]
    child_args: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ParentLast:
    """`children` may be called directly after this tool only, and nothing else may be then."""

    tool_name: str
    children: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Conditional:
    """A rule: the return of this tool names the next one.

    Without a match it is `default_child`; without that the rule is silent. With `require_output_mapping` it allows
    nothing without a match, so that all are allowed in the end (4 above).
    """

    tool_name: str
    child_output_mapping: Mapping[str, str]
    default_child: str | None = None
    require_output_mapping: bool = False


@dataclass(frozen=True, slots=True)
class MaxCount:
    """This tool may be called `max_count` times in one request."""

    tool_name: str
    max_count: int


@dataclass(frozen=True, slots=True)
class ContinueLoop:
    """Another step follows a call of this tool."""

    tool_name: str


@dataclass(frozen=True, slots=True)
class ExitLoop:
    """A call of this tool ends the turn."""

    tool_name: str


@dataclass(frozen=True, slots=True)
class RequiredBeforeExit:
    """The turn cannot end before this tool was called, if it is attached."""

    tool_name: str


@dataclass(frozen=True, slots=True)
class RequiresApproval:
    """Calls of this tool wait for approval. After `timeout_seconds`, where given, `on_timeout` is the answer.

    The time-out is Loci's; the reference waits for ever.
    """

    tool_name: str
    timeout_seconds: float | None = None
    on_timeout: Literal["deny", "approve"] = "deny"


ToolRule = (
    RunFirst
    | Children
    | ParentLast
    | Conditional
    | MaxCount
    | ContinueLoop
    | ExitLoop
    | RequiredBeforeExit
    | RequiresApproval
)


@dataclass(frozen=True, slots=True)
class ExecutedCall:
    """A call of this request that was executed, and what it returned. No rule asks whether that was an error."""

    name: str
    returned: str = ""


@dataclass(frozen=True, slots=True)
class Choice:
    """The tools that the next model call may call, in the order of the attached tools, and whether it must call one.

    `prefilled` holds, by tool, the arguments that override the model's.
    """

    allowed: tuple[str, ...]
    forced: bool = False
    prefilled: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def only(self) -> str | None:
        """The one tool that must be called, if there is but one."""
        return self.allowed[0] if self.forced and len(self.allowed) == 1 else None


def choose(rules: Sequence[ToolRule], attached: Sequence[str], called: Sequence[ExecutedCall]) -> Choice:
    """Returns what may be called next. `called` are the calls of this request that were executed, oldest first."""
    every = frozenset(attached)
    first = frozenset() if called else every & {rule.tool_name for rule in rules if isinstance(rule, RunFirst)}
    left, forced = (first, True) if first else _allowed_by_all(rules, every, called)
    if not left:
        left, forced = every, False
    prefilled = {name: args for name, args in _prefilled_arguments(rules, called).items() if name in left}
    return Choice(tuple(name for name in attached if name in left), forced, prefilled)


def is_terminal(rules: Iterable[ToolRule], name: str) -> bool:
    """Returns whether a call of `name` ends the turn."""
    return any(isinstance(rule, ExitLoop) and rule.tool_name == name for rule in rules)


def continues(rules: Iterable[ToolRule], name: str) -> bool:
    """Returns whether a rule of the older loops wants another step after `name`; in the newest one any call goes on."""
    return any(isinstance(rule, ContinueLoop | Children | Conditional) and rule.tool_name == name for rule in rules)


def missing_calls(
    rules: Iterable[ToolRule], attached: Sequence[str], called: Iterable[ExecutedCall]
) -> tuple[str, ...]:
    """Returns the attached tools that still have to be called before the turn may end; a failed call is enough."""
    required = (rule.tool_name for rule in rules if isinstance(rule, RequiredBeforeExit))
    done = {call.name for call in called}
    return tuple(dict.fromkeys(name for name in required if name in attached and name not in done))


def needs_approval(rules: Iterable[ToolRule], name: str) -> RequiresApproval | None:
    """Returns the rule by which calls of `name` wait, the first if there are several."""
    return next((rule for rule in rules if isinstance(rule, RequiresApproval) and rule.tool_name == name), None)


def allows_parallel(rules: Iterable[ToolRule]) -> bool:
    """Returns whether one reply may hold several calls: not with rules about their order or number."""
    return all(isinstance(rule, RequiresApproval) for rule in rules)


def _allowed_by_all(
    rules: Iterable[ToolRule], every: frozenset[str], called: Sequence[ExecutedCall]
) -> tuple[frozenset[str], bool]:
    """Returns what all rules but run_first allow, and whether one of them forces a call."""
    left, forced = every, False
    for rule in rules:
        if (narrowing := _allowed_by(rule, every, called)) is not None:
            left, forced = left & narrowing[0], forced or narrowing[1]
    return left, forced


def _allowed_by(
    rule: ToolRule, every: frozenset[str], called: Sequence[ExecutedCall]
) -> tuple[frozenset[str], bool] | None:
    """Returns what one rule allows now, and whether it forces a call; None where it is silent."""
    follows = bool(called) and called[-1].name == rule.tool_name
    match rule:
        case Children(children=children):
            return (frozenset(children), True) if follows else None
        case ParentLast(children=children):
            return (frozenset(children), True) if follows else (every - frozenset(children), False)
        case Conditional():
            return _conditional_choice(rule, called[-1].returned) if follows else None
        case MaxCount(tool_name=name, max_count=most):
            return (every - {name}, False) if sum(call.name == name for call in called) >= most else None
        case RunFirst() | ContinueLoop() | ExitLoop() | RequiredBeforeExit() | RequiresApproval():
            return None
    assert_never(rule)


def _conditional_choice(rule: Conditional, returned: str) -> tuple[frozenset[str], bool] | None:
    child = match_case(rule.child_output_mapping, returned)
    if child is None and rule.require_output_mapping:
        return frozenset(), True
    child = child or rule.default_child
    return None if child is None else (frozenset((child,)), True)


def _prefilled_arguments(rules: Iterable[ToolRule], called: Sequence[ExecutedCall]) -> dict[str, dict[str, Any]]:
    merged: dict[str, dict[str, Any]] = {}
    for rule in rules:
        arguments: Mapping[str, Mapping[str, Any]] = {}
        if isinstance(rule, RunFirst) and not called:
            arguments = {rule.tool_name: rule.args or {}}
        elif isinstance(rule, Children) and called and called[-1].name == rule.tool_name:
            arguments = rule.child_args
        for name, args in arguments.items():
            if args:
                merged[name] = merged.get(name, {}) | dict(args)
    return merged
