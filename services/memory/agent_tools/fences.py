"""Owners of runs: a replica that was frozen and wakes up asks for what it is no longer its to do.

A later owner of a run says so before it goes on with calls that an earlier one may be making. Who asks is in the call
context: the run, and the fence of its owner.
"""

from uuid import UUID

from services.common.context import current, current_or_none
from services.common.errors import FailedPrecondition

# Whether a later owner than this has the run: parameters or columns of the tenant, the run and the fence.
FENCED = """EXISTS (
    SELECT FROM memory.run_fences o WHERE o.organization_id = {} AND o.run_id = {} AND o.fence > {})"""
# $1 organization, $2 run, $3 fence
FENCE = """
INSERT INTO memory.run_fences (organization_id, run_id, fence) VALUES ($1, $2, $3)
ON CONFLICT (organization_id, run_id) DO UPDATE SET fence = greatest(run_fences.fence, excluded.fence)
"""
FORGET_FENCES = """
DELETE FROM memory.run_fences WHERE (organization_id, run_id) IN (
    SELECT organization_id, run_id FROM memory.run_fences
    WHERE created_at < now() - $1::interval ORDER BY created_at LIMIT $2)
"""


def owner() -> tuple[UUID | None, int]:
    """Returns the run and the fence of who calls; outside of runs, None and 0."""
    caller = current_or_none()
    return (None, 0) if caller is None else (caller.run_id, caller.fence)


def run_fenced() -> FailedPrecondition:
    """Returns the error for an earlier owner."""
    return FailedPrecondition(f"run-{current().run_id} is driven by another replica now", reason="RUN_FENCED")
