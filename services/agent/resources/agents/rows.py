"""Rows of agents <-> values."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID

from services.agent.core.rules.rule_json import rules_from_json, rules_to_json
from services.agent.postgres.rows import message_from_row
from services.agent.resources.agents.model.settings import SETTABLE, Agent, AgentSettings, LastRun, PendingApproval
from services.agent.resources.agents.statements import WAITING
from services.agent.resources.groups.model import Group
from services.agent.resources.identities.model import Identity
from services.agent.resources.tables import MESSAGE_COLUMNS
from services.common.core.records import columns, record, record_from_json
from services.common.errors import NotFound


def agent_not_found(agent_id: UUID) -> NotFound:
    """Returns the error for an agent that is not there."""
    return NotFound(f"Agent agent-{agent_id} not found", reason="AGENT_NOT_FOUND")


def agent_from_row(row: Mapping[str, Any]) -> Agent:
    """Returns a row of `agents`, with what `statements.whole` adds to it where the query has its columns."""
    settings = replace(record(AgentSettings, row), tool_rules=rules_from_json(row["tool_rules"]))
    return Agent(
        id=row["id"],
        version=row["version"],
        settings=settings,
        created_by_id=row["created_by_id"],
        last_updated_by_id=row["last_updated_by_id"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        window=tuple(row.get("window") or ()),
        last_run=_last_run(row),
        waiting=_waiting(row),
        identities=tuple(record_from_json(Identity, each) for each in row.get("identities") or ()),
        managed_group=record_from_json(Group, row["managed_group"]) if row.get("managed_group") else None,
    )


def _last_run(row: Mapping[str, Any]) -> LastRun | None:
    if not row.get("run_completed_at"):
        return None
    return LastRun(row["run_stop_reason"], row["run_created_at"], row["run_completed_at"])


def _waiting(row: Mapping[str, Any]) -> PendingApproval | None:
    if not row.get(f"{WAITING}id"):
        return None
    message = message_from_row({column.name: row[WAITING + column.name] for column in MESSAGE_COLUMNS})
    return PendingApproval(message, row["approval_due"])


def agent_columns(settings: AgentSettings) -> dict[str, Any]:
    """Returns the columns of an agent's row that hold its settings."""
    return columns(settings, SETTABLE) | {"tool_rules": rules_to_json(settings.tool_rules)}
