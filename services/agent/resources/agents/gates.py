"""Approvals that a tool cannot leave behind: what it makes or equips waits for a person where its own agent does.

A tool acts for its tenant, so it may make an agent or attach a tool to one. Without this it would give what waits for
a person to an agent that does not wait, and talk to that one.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from services.agent.core.rules.tool_rules import RequiresApproval, ToolRule
from services.agent.resources.agents.model.base_tools import without_approval
from services.agent.resources.agents.model.settings import AgentSettings
from services.agent.resources.agents.ports import AgentStore, CatalogueTool
from services.common.context import RUN_ROLE, CallContext
from services.common.errors import PermissionDenied

Gates = tuple[RequiresApproval, ...]


async def gates_over(store: AgentStore, caller: CallContext) -> Gates:
    """Returns the approvals that hold in the caller's run and in those that wait for it; none unless it is a tool."""
    if caller.role != RUN_ROLE:
        return ()
    run_ids = (*caller.ancestors, caller.run_id) if caller.run_id is not None else caller.ancestors
    rules = await store.rules_of_runs(caller.organization_id, run_ids)
    return tuple(rule for rule in rules if isinstance(rule, RequiresApproval))


def check_own_rules(caller: CallContext, rules: Iterable[ToolRule]) -> None:
    """Raises PermissionDenied (RUN_NOT_PERMITTED) where a tool makes an approval that time gives."""
    if caller.role == RUN_ROLE:
        for rule in rules:
            if isinstance(rule, RequiresApproval) and rule.on_timeout == "approve":
                sentence = f"a tool may not have calls of {rule.tool_name[:80]} approved by a time-out: a person may"
                raise PermissionDenied(sentence, reason="RUN_NOT_PERMITTED")


def with_gates(rules: Sequence[ToolRule], gates: Gates) -> tuple[ToolRule, ...]:
    """Returns the rules with the gates in place of what they say about approval of the same tools."""
    kept = tuple(rules)
    for gate in gates:
        kept = without_approval(kept, gate.tool_name)
    return (*kept, *dict.fromkeys(gates))


def gates_of_new_tools(
    after: AgentSettings, before: AgentSettings, tools: Sequence[CatalogueTool], gates: Gates
) -> AgentSettings:
    """Returns `after` with the gates of those of the tools that were not attached before."""
    names = {tool.name for tool in tools if tool.id not in before.tool_ids}
    added = tuple(gate for gate in gates if gate.tool_name in names)
    return replace(after, tool_rules=with_gates(after.tool_rules, added)) if added else after
