"""The statements of replicas: their leases, and the runs that they claim, hand on and give up."""

LEASE = "interval '2.5 seconds'"

REGISTER = "INSERT INTO agent.workers (id) VALUES ($1)"

# One statement every half second: the beat, and all that a replica must notice. $1 worker
TICK = f"""
WITH beat AS (
    UPDATE agent.workers SET beat_at = clock_timestamp() WHERE id = $1 RETURNING id
)
SELECT EXISTS (SELECT FROM beat) AS alive,
       ARRAY(SELECT r.organization_id FROM agent.runs r WHERE r.worker_id = $1 AND r.status = 'running' ORDER BY r.id)
           AS tenants,
       ARRAY(SELECT r.id FROM agent.runs r WHERE r.worker_id = $1 AND r.status = 'running' ORDER BY r.id) AS mine,
       ARRAY(SELECT r.id FROM agent.runs r WHERE r.worker_id = $1 AND r.status = 'running' AND r.cancel_requested)
           AS cancelled,
       EXISTS (SELECT FROM agent.workers WHERE beat_at < clock_timestamp() - {LEASE}) AS lost,
       EXISTS (SELECT FROM agent.ready_tenants) AS ready,
       EXISTS (SELECT FROM agent.conversation_heads
               WHERE approval_due <= now() AND active_run_id IS NULL) AS overdue
"""

# Runs of replicas that stopped beating go to the queue. A run whose row somebody holds, perhaps its frozen owner, stays
# for the next look, and its owner's row with it: nobody waits here.
REAP = f"""
WITH dead AS (
    SELECT id FROM agent.workers WHERE beat_at < clock_timestamp() - {LEASE} FOR UPDATE SKIP LOCKED
), free AS (
    SELECT organization_id, id FROM agent.runs WHERE worker_id IN (SELECT id FROM dead) AND status = 'running'
    FOR NO KEY UPDATE SKIP LOCKED
), orphan AS (
    UPDATE agent.runs r SET worker_id = NULL FROM free
    WHERE r.organization_id = free.organization_id AND r.id = free.id
    RETURNING r.organization_id, r.id
), queued AS (
    INSERT INTO agent.run_queue (organization_id, run_id) SELECT organization_id, id FROM orphan ON CONFLICT DO NOTHING
), ready AS (
    INSERT INTO agent.ready_tenants (organization_id) SELECT DISTINCT organization_id FROM orphan ON CONFLICT DO NOTHING
), gone AS (
    DELETE FROM agent.workers w WHERE w.id IN (SELECT id FROM dead) AND NOT EXISTS (
        SELECT FROM agent.runs r WHERE r.worker_id = w.id AND r.status = 'running'
            AND (r.organization_id, r.id) NOT IN (SELECT organization_id, id FROM free))
)
SELECT count(*) FROM orphan
"""

# A replica that stops hands its runs over. $1 worker
RESIGN = """
WITH orphan AS (
    UPDATE agent.runs SET worker_id = NULL WHERE worker_id = $1 AND status = 'running' RETURNING organization_id, id
), queued AS (
    INSERT INTO agent.run_queue (organization_id, run_id) SELECT organization_id, id FROM orphan ON CONFLICT DO NOTHING
), ready AS (
    INSERT INTO agent.ready_tenants (organization_id) SELECT DISTINCT organization_id FROM orphan ON CONFLICT DO NOTHING
)
DELETE FROM agent.workers WHERE id = $1
"""

# First a tenant, the one served longest ago ...
CHOOSE_TENANT = """
UPDATE agent.ready_tenants SET served_at = clock_timestamp() WHERE organization_id = (
    SELECT organization_id FROM agent.ready_tenants ORDER BY served_at LIMIT 1 FOR UPDATE SKIP LOCKED)
RETURNING organization_id
"""

# A run that is claimed. claims: how often since it got anywhere, which is since its last fact, else since it was
# accepted. seconds_left: by the clock that set its time limit.
_CLAIMED = """r.organization_id, r.id, r.agent_id, r.conversation_id, r.user_id, r.fence, r.facts, r.cancel_requested,
    r.ancestors, r.ceiling, r.background, r.created_at,
    extract(epoch FROM r.deadline - clock_timestamp())::float8 AS seconds_left, r.fence - coalesce((
        SELECT f.fence FROM agent.facts f WHERE f.organization_id = r.organization_id AND f.run_id = r.id
        ORDER BY f.number DESC LIMIT 1), 0) AS claims"""

# ... then its oldest runs, but for those that it has refused. $1 organization, $2 most, $3 worker
CLAIM_QUEUED = f"""
WITH picked AS (
    SELECT run_id FROM agent.run_queue WHERE organization_id = $1 AND $3 <> ALL(refused_by)
    ORDER BY entered_at LIMIT $2 FOR UPDATE SKIP LOCKED
), taken AS (
    DELETE FROM agent.run_queue q USING picked WHERE q.organization_id = $1 AND q.run_id = picked.run_id
    RETURNING q.run_id, q.refused_by
)
UPDATE agent.runs r SET worker_id = $3, fence = r.fence + 1
FROM taken WHERE r.organization_id = $1 AND r.id = taken.run_id AND r.status = 'running'
RETURNING {_CLAIMED}, taken.refused_by
"""

# A run that this replica cannot read goes to one that can. $1 organization, $2 run, $3 fence, $4 who has refused it
HAND_BACK = """
WITH free AS (
    UPDATE agent.runs SET worker_id = NULL WHERE organization_id = $1 AND id = $2 AND fence = $3 AND status = 'running'
    RETURNING id
), ready AS (
    INSERT INTO agent.ready_tenants (organization_id) SELECT $1 FROM free ON CONFLICT DO NOTHING
)
INSERT INTO agent.run_queue (organization_id, run_id, refused_by) SELECT $1, id, $4::uuid[] FROM free
ON CONFLICT (organization_id, run_id) DO UPDATE SET refused_by = excluded.refused_by
"""
# One that nobody could read until its time was over is offered to all again: somebody has to end it.
OFFER_AGAIN = """
UPDATE agent.run_queue q SET refused_by = '{}' FROM agent.runs r
WHERE q.refused_by <> '{}' AND r.organization_id = q.organization_id AND r.id = q.run_id
    AND r.deadline < clock_timestamp()
"""

# A tenant without rows that this replica may take is no longer ready. The second statement repairs what a race may have
# left, and tells those who are new. $1 organization, $2 worker
TENANT_DONE = """
DELETE FROM agent.ready_tenants WHERE organization_id = $1
    AND NOT EXISTS (SELECT FROM agent.run_queue WHERE organization_id = $1 AND $2 <> ALL(refused_by))
"""
REPAIR_READY = """
INSERT INTO agent.ready_tenants (organization_id)
SELECT DISTINCT organization_id FROM agent.run_queue ON CONFLICT DO NOTHING
"""

# A run of this replica that nobody drives. $1 organization, $2 run, $3 worker
RECLAIM = f"""
UPDATE agent.runs r SET fence = fence + 1
WHERE organization_id = $1 AND id = $2 AND worker_id = $3 AND status = 'running'
RETURNING {_CLAIMED}, '{{}}'::uuid[] AS refused_by
"""

# A run goes from its owner under this fence to another. $1 organization, $2 run, $3 fence, $4 worker
ADOPT = f"""
UPDATE agent.runs r SET fence = fence + 1, worker_id = $4
WHERE organization_id = $1 AND id = $2 AND fence = $3 AND status = 'running'
RETURNING {_CLAIMED}, '{{}}'::uuid[] AS refused_by
"""

# Whether a run waits for another that has not ended. $1 organization, $2 run, $3 when it was accepted
WAITS_FOR_RUNS = """
SELECT EXISTS (
    SELECT FROM agent.runs
    WHERE organization_id = $1 AND created_at >= $3 AND status IN ('created', 'running') AND $2 = ANY(ancestors))
"""

# Runs whose owner is in no table (it was reaped while the run was handed to it) go to the queue, too.
REQUEUE_LOST = """
WITH free AS (
    SELECT r.organization_id, r.id FROM agent.runs r
    WHERE r.status = 'running'
        AND (r.worker_id IS NULL OR NOT EXISTS (SELECT FROM agent.workers w WHERE w.id = r.worker_id))
        AND NOT EXISTS (
            SELECT FROM agent.run_queue q WHERE q.organization_id = r.organization_id AND q.run_id = r.id)
    FOR NO KEY UPDATE OF r SKIP LOCKED
), orphan AS (
    UPDATE agent.runs r SET worker_id = NULL FROM free
    WHERE r.organization_id = free.organization_id AND r.id = free.id
    RETURNING r.organization_id, r.id
)
INSERT INTO agent.run_queue (organization_id, run_id) SELECT organization_id, id FROM orphan ON CONFLICT DO NOTHING
"""

# A run that cannot be driven is ended as it is. $1 organization, $2 run, $3 fence, $4 status, $5 stop reason, $6 error
GIVE_UP = """
WITH input AS (
    DELETE FROM agent.conversation_line l USING agent.runs r
    WHERE l.organization_id = $1 AND l.run_id = $2 AND r.organization_id = $1 AND r.id = $2
        AND l.conversation_id = r.conversation_id AND r.fence = $3
)
UPDATE agent.runs SET status = $4, stop_reason = $5, error = $6::jsonb, completed_at = clock_timestamp()
WHERE organization_id = $1 AND id = $2 AND fence = $3 AND status = 'running'
RETURNING conversation_id
"""
