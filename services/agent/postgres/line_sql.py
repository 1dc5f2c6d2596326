"""The statements of the line of a conversation: who waits, whose turn it is, who leaves."""

from services.agent.postgres.lease_sql import LEASE
from services.agent.postgres.sql import INSERT_MESSAGES, MESSAGE_VALUES, messages_in
from services.common.core.statements import Statement

# A request takes its place in the line. front: before all others; seconds: its time limit.
ENTER_LINE = Statement("""
WITH head AS (
    UPDATE agent.conversation_heads SET waiting = waiting + 1
    WHERE organization_id = :organization_id AND conversation_id = :conversation_id
), run AS (
    INSERT INTO agent.runs (organization_id, id, agent_id, conversation_id, user_id, status, home_id, deadline,
                            ancestors, ceiling, request_hash, options, background, created_at)
    VALUES (:organization_id, :run_id, :agent_id, :conversation_id, :user_id, 'created', :home_id,
            now() + make_interval(secs => :seconds), :ancestors, :ceiling::jsonb, :request_hash, :options::jsonb,
            :background, :created_at)
), keys AS (
    INSERT INTO agent.run_keys (organization_id, key, run_id)
    SELECT :organization_id, key, :run_id FROM unnest(:keys::text[]) AS key
), labels AS (
    INSERT INTO agent.run_keys (organization_id, key, run_id)
    SELECT :organization_id, key, :run_id FROM unnest(:labels::text[]) AS key
    ON CONFLICT (organization_id, key) DO UPDATE SET run_id = excluded.run_id
)
INSERT INTO agent.conversation_line (organization_id, conversation_id, run_id, schema_version, input, front)
VALUES (:organization_id, :conversation_id, :run_id, :schema_version, :input::jsonb, :front)
""")

# Those who wait; what was cancelled is in the line until its text is said. $1 organization, $2 conversation
COUNT_WAITING = """
SELECT count(*) FROM agent.conversation_line l
JOIN agent.runs r ON r.organization_id = $1 AND r.id = l.run_id AND r.status = 'created'
WHERE l.organization_id = $1 AND l.conversation_id = $2
"""

# $1 organization, $2 conversation, $3 run
TAKE_INPUT = """
DELETE FROM agent.conversation_line WHERE organization_id = $1 AND conversation_id = $2 AND run_id = $3
RETURNING schema_version, input
"""

# Answers in line, and those of the run whose turn has come and that has not taken them yet.
# $1 organization, $2 conversation
ANSWERS_IN_LINE = """
SELECT l.run_id, l.schema_version, l.input FROM agent.conversation_line l
JOIN agent.runs r ON r.organization_id = $1 AND r.id = l.run_id AND r.status <> 'cancelled'
WHERE l.organization_id = $1 AND l.conversation_id = $2 AND l.front ORDER BY l.entered_at
"""

# The next in line gets the turn: its home drives it if it is alive, anyone otherwise, and anyone drives what is in the
# background. While calls wait for the client, what is said in the background waits, too: nobody is there to be refused.
# Its time limit is counted from now. cancelled: before that one stands what the log takes now; see TAKE_CANCELLED.
# $1 organization, $2 conversation
PROMOTE = f"""
WITH next AS (
    SELECT l.run_id, l.entered_at, r.home_id,
           NOT r.background AND EXISTS (
               SELECT FROM agent.workers w WHERE w.id = r.home_id AND w.beat_at > clock_timestamp() - {LEASE}) AS alive
    FROM agent.conversation_line l
    JOIN agent.runs r ON r.organization_id = $1 AND r.id = l.run_id AND r.status = 'created'
    JOIN agent.conversation_heads h ON h.organization_id = $1 AND h.conversation_id = $2
    WHERE l.organization_id = $1 AND l.conversation_id = $2
        AND (h.pending_message_id IS NULL OR NOT r.background OR l.input @> '{{"messages": [{{"role": "approval"}}]}}'
             OR r.options ? 'compact' AND l.input -> 'messages' = '[]')
    ORDER BY l.front DESC, l.entered_at LIMIT 1
), head AS (
    UPDATE agent.conversation_heads
    SET active_run_id = (SELECT run_id FROM next), waiting = (
        SELECT count(*) FROM agent.conversation_line l
        WHERE l.organization_id = $1 AND l.conversation_id = $2 AND l.run_id IS DISTINCT FROM (SELECT run_id FROM next))
    WHERE organization_id = $1 AND conversation_id = $2
), run AS (
    UPDATE agent.runs r
    SET status = 'running', started_at = clock_timestamp(), worker_id = CASE WHEN next.alive THEN next.home_id END,
        deadline = CASE WHEN r.background AND r.ancestors = '{{}}'
                        THEN clock_timestamp() + (r.deadline - r.created_at) ELSE r.deadline END
    FROM next WHERE r.organization_id = $1 AND r.id = next.run_id
), queued AS (
    INSERT INTO agent.run_queue (organization_id, run_id) SELECT $1, run_id FROM next WHERE NOT alive
    ON CONFLICT DO NOTHING
), ready AS (
    INSERT INTO agent.ready_tenants (organization_id) SELECT $1 FROM next WHERE NOT alive ON CONFLICT DO NOTHING
)
SELECT next.run_id, CASE WHEN next.alive THEN next.home_id END AS home_id, next.entered_at, EXISTS (
    SELECT FROM agent.conversation_line l
    JOIN agent.runs r ON r.organization_id = $1 AND r.id = l.run_id AND r.status = 'cancelled'
    JOIN agent.conversation_heads h ON h.organization_id = $1 AND h.conversation_id = $2
    WHERE l.organization_id = $1 AND l.conversation_id = $2 AND h.pending_message_id IS NULL
        AND l.entered_at < coalesce(next.entered_at, 'infinity')) AS cancelled
FROM (SELECT) one LEFT JOIN next ON true
"""

# What was cancelled while it waited is said all the same when its turn would have come: it was accepted.
# $1 organization, $2 conversation, $3 when the next entered the line, or null
TAKE_CANCELLED = """
WITH taken AS (
    DELETE FROM agent.conversation_line l USING agent.runs r
    WHERE l.organization_id = $1 AND l.conversation_id = $2 AND r.organization_id = $1 AND r.id = l.run_id
        AND r.status = 'cancelled' AND l.entered_at < coalesce($3::timestamptz, 'infinity')
    RETURNING l.run_id, l.input, l.entered_at
), head AS (
    UPDATE agent.conversation_heads SET waiting = waiting - (SELECT count(*) FROM taken)
    WHERE organization_id = $1 AND conversation_id = $2
)
SELECT run_id, input FROM taken ORDER BY entered_at
"""
# messages: of a run that never began; message_count: their number.
SAY = Statement(f"""
WITH head AS (
    UPDATE agent.conversation_heads SET next_seq = next_seq + :message_count, last_message_at = clock_timestamp()
    WHERE organization_id = :organization_id AND conversation_id = :conversation_id
    RETURNING log_id, next_seq - :message_count AS first_seq
)
{INSERT_MESSAGES}
SELECT :organization_id, head.log_id, head.first_seq + m.place, m.id, c.agent_id, :conversation_id, :run_id, NULL, NULL,
       {MESSAGE_VALUES}
FROM head
JOIN agent.conversations c ON c.organization_id = :organization_id AND c.id = :conversation_id,
     {messages_in(":messages")}
""")

# Whoever attaches to a run that still waits becomes its home: its reader is here. $1 organization, $2 run, $3 worker
MOVE_HOME = """
UPDATE agent.runs SET home_id = $3 WHERE organization_id = $1 AND id = $2 AND status = 'created' AND home_id <> $3
"""

# A background run whose turn had come waits in line again, since calls wait for the client; one that was cancelled
# meanwhile ends. $1 organization, $2 conversation, $3 run, $4 fence, $5 the message with the calls
WAIT_IN_LINE = """
WITH run AS (
    UPDATE agent.runs SET worker_id = NULL, started_at = NULL,
        status = CASE WHEN cancel_requested THEN 'cancelled' ELSE 'created' END,
        stop_reason = CASE WHEN cancel_requested THEN 'cancelled' END,
        completed_at = CASE WHEN cancel_requested THEN clock_timestamp() END
    WHERE organization_id = $1 AND id = $3 AND fence = $4 AND status = 'running' AND facts = 0
    RETURNING id
)
UPDATE agent.conversation_heads h SET active_run_id = NULL, pending_message_id = coalesce(pending_message_id, $5)
FROM run WHERE h.organization_id = $1 AND h.conversation_id = $2 AND h.active_run_id = run.id
RETURNING h.conversation_id
"""

# $1 organization, $2 conversation, $3 run, null for a conversation that is idle
RELEASE_HEAD = """
UPDATE agent.conversation_heads SET active_run_id = CASE WHEN waiting = 0 THEN NULL ELSE active_run_id END
WHERE organization_id = $1 AND conversation_id = $2 AND active_run_id IS NOT DISTINCT FROM $3
RETURNING waiting
"""

# Conversations whose turn is held by a run that has ended while others wait, or by none, though no call waits for the
# client any more: the replica that ended it was lost before it could say who is next.
STUCK_LINES = """
SELECT DISTINCT h.organization_id, h.conversation_id, h.active_run_id
FROM agent.conversation_line l
JOIN agent.conversation_heads h ON h.organization_id = l.organization_id AND h.conversation_id = l.conversation_id
LEFT JOIN agent.runs r ON r.organization_id = h.organization_id AND r.id = h.active_run_id
WHERE r.completed_at < clock_timestamp() - interval '1 second'
    OR h.active_run_id IS NULL AND h.pending_message_id IS NULL
"""

# The request that has the conversation for itself, or waits to. $1 organization, $2 conversation, $3 its active run
LOCKING_RUN = """
SELECT r.id FROM agent.runs r
WHERE r.organization_id = $1 AND (r.options ->> 'locks')::boolean AND r.status <> 'cancelled'
    AND (r.id = $3 OR r.id IN (
    SELECT l.run_id FROM agent.conversation_line l WHERE l.organization_id = $1 AND l.conversation_id = $2))
ORDER BY r.id <> $3, r.created_at LIMIT 1
"""

# A run still in line ends. $4: its home, when its client is gone; what is in the background then stays. What it says
# stays in the line until the log takes it, but for one that was withdrawn or that another run began.
# $1 organization, $2 conversation, $3 run
CANCEL_WAITING = """
WITH ended AS (
    UPDATE agent.runs r SET status = 'cancelled', stop_reason = 'cancelled', completed_at = clock_timestamp()
    FROM agent.conversation_line l
    WHERE l.organization_id = $1 AND l.conversation_id = $2 AND l.run_id = $3
        AND r.organization_id = $1 AND r.id = $3 AND r.status = 'created'
        AND ($4::uuid IS NULL OR r.home_id = $4 AND NOT r.background)
    RETURNING r.id, $4::uuid IS NULL AND r.ancestors = '{}' AS is_said
), gone AS (
    DELETE FROM agent.conversation_line l USING ended
    WHERE l.organization_id = $1 AND l.conversation_id = $2 AND l.run_id = ended.id AND NOT ended.is_said
), head AS (
    UPDATE agent.conversation_heads SET waiting = waiting - 1
    WHERE organization_id = $1 AND conversation_id = $2 AND EXISTS (SELECT FROM ended WHERE NOT is_said)
)
SELECT id FROM ended
"""

# $1 organization, $2 run, $3 its home
MOVE_TO_BACKGROUND = """
UPDATE agent.runs SET background = true WHERE organization_id = $1 AND id = $2 AND home_id = $3 AND status = 'created'
"""

# A request that was withdrawn was never made: its retry is a first attempt. $1 organization, $2 run
FORGET_REQUEST = """
WITH keys AS (DELETE FROM agent.run_keys WHERE organization_id = $1 AND run_id = $2)
UPDATE agent.runs SET request_hash = NULL WHERE organization_id = $1 AND id = $2
"""
