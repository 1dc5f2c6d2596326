"""The tools that an agent begins with, and the rules that come with tools. Pure.

Source: LETTA V1 API, create agent and built-in tools.
"""

from collections.abc import Iterable, Sequence

from services.agent.core.rules.tool_rules import ContinueLoop, ExitLoop, RequiresApproval, ToolRule

LETTA_V1_AGENT = "letta_v1_agent"
_OLDER = (
    "send_message",
    "conversation_search",
    "core_memory_append",
    "core_memory_replace",
    "memory",
    "memory_apply_patch",
)
_TENDING = ("memory_replace", "memory_insert", "memory_rethink", "memory_finish_edits")

# What an agent with folders reads their files with.
FILE_TOOLS = ("open_files", "grep_files", "semantic_search_files")

# By agent type; its keys are all the types there are.
BASE_TOOLS: dict[str, tuple[str, ...]] = {
    LETTA_V1_AGENT: ("memory_insert", "memory_replace", "conversation_search"),
    "memgpt_agent": _OLDER,
    "memgpt_v2_agent": ("send_message", "conversation_search", "memory_replace", "memory_insert"),
    "split_thread_agent": _OLDER,
    "sleeptime_agent": _TENDING,
    "react_agent": (),
    "workflow_agent": (),
    # Another agent tends its memory, so that it can answer at once.
    "voice_convo_agent": ("send_message", "conversation_search"),
    "voice_sleeptime_agent": _TENDING,
}

# Tools that end a turn, and those after which it goes on, where base tool rules are wanted.
_ENDING = frozenset({"send_message", "memory_finish_edits", "send_message_to_agent_async"})
_GOING_ON = frozenset(
    {
        "conversation_search",
        "archival_memory_insert",
        "archival_memory_search",
        "core_memory_append",
        "core_memory_replace",
        "rethink_memory",
        "memory",
        "open_files",
        "grep_files",
        "semantic_search_files",
        "memory_apply_patch",
        "memory_insert",
        "memory_replace",
        "memory_rethink",
    }
)


def has_base_rules(agent_type: str) -> bool:
    """Returns whether agents of this type have rules about their base tools unless their client says otherwise."""
    return agent_type != LETTA_V1_AGENT


def with_base_rules(rules: Sequence[ToolRule], tool_names: Iterable[str]) -> tuple[ToolRule, ...]:
    """Returns the rules and those of the base tools among `tool_names`, but for tools whose end the rules speak of."""
    ruled = {rule.tool_name for rule in rules if isinstance(rule, ExitLoop | ContinueLoop)}
    added = (_base_rule(name) for name in tool_names if name not in ruled)
    return (*rules, *(rule for rule in added if rule is not None))


def with_approvals(rules: Sequence[ToolRule], tool_names: Iterable[str]) -> tuple[ToolRule, ...]:
    """Returns the rules, by which now also calls of these tools wait for approval."""
    waiting = {rule.tool_name for rule in rules if isinstance(rule, RequiresApproval)}
    return (*rules, *(RequiresApproval(name) for name in dict.fromkeys(tool_names) if name not in waiting))


def without_approval(rules: Sequence[ToolRule], tool_name: str) -> tuple[ToolRule, ...]:
    """Returns the rules, by which no call of this tool waits for approval."""
    return tuple(rule for rule in rules if not (isinstance(rule, RequiresApproval) and rule.tool_name == tool_name))


def _base_rule(name: str) -> ToolRule | None:
    if name in _ENDING:
        return ExitLoop(name)
    return ContinueLoop(name) if name in _GOING_ON else None
