"""Statements about conversations that are one round trip each, whatever they make or share."""

from services.common.core.statements import Statement

# What is left of a reservation when its conversation is there: nothing. One that is being swept is not taken.
_RELEASE = "DELETE FROM agent.outbox WHERE organization_id = :organization_id AND id = :reservation_id AND attempts = 0"

RELEASE = Statement(_RELEASE)
USE_RESERVATION = Statement(f"{_RELEASE} RETURNING id")

RESERVE = Statement("""
INSERT INTO agent.outbox AS o (organization_id, id, kind, subject_id, payload, not_before)
SELECT :organization_id, :reservation_id, 'purge_conversation_orphan', :id, :payload::jsonb, now() + interval '1 hour'
WHERE NOT EXISTS (SELECT FROM agent.conversations WHERE organization_id = :organization_id AND id = :id)
ON CONFLICT (organization_id, id) DO UPDATE SET not_before = excluded.not_before WHERE o.attempts = 0
RETURNING id
""")

# A conversation that needs a reservation comes out of it: the commit point.
# reservation_id: null where none is needed
_BEGIN = f"""
WITH reservation AS ({_RELEASE} RETURNING id), owner AS (
    SELECT id FROM agent.agents
    WHERE organization_id = :organization_id AND id = :agent_id AND deleted_at IS NULL
        AND (:reservation_id::uuid IS NULL OR EXISTS (SELECT FROM reservation))
)"""
_COLUMNS = """organization_id, id, agent_id, created_by_id, isolated_labels, hidden, summary, description, model,
        model_settings, context_window_limit"""

INSERT = Statement(f"""{_BEGIN}, made AS (
    INSERT INTO agent.conversations ({_COLUMNS}, archived_at)
    SELECT :organization_id, :id, owner.id, :user_id, :isolated_labels::text[], :hidden::boolean, :summary,
        :description, :model, :model_settings::jsonb, :context_window_limit::integer, :archived_at::timestamptz
    FROM owner
    ON CONFLICT DO NOTHING RETURNING *
), segment AS (
    INSERT INTO agent.conversation_segments (organization_id, conversation_id, ordinal, log_id, from_seq)
    SELECT :organization_id, made.id, 0, :log_id::uuid, 1 FROM made
), head AS (
    INSERT INTO agent.conversation_heads (organization_id, conversation_id, log_id, last_message_at)
    SELECT :organization_id, made.id, :log_id::uuid, :last_message_at::timestamptz FROM made
    RETURNING last_message_at
)
SELECT made.*, head.last_message_at FROM made, head
""")

# The source's segments, its open one closed where it is now, and a log of its own. A fork from before the summary, or
# from before the window, begins with all that was said until then: so it was at the time. Calls that wait for the
# client where it begins wait in it, too, and for ever: a rule answers once.
# last_ordinal and last_seq: of the last message to take (null: all)
FORK = Statement(f"""{_BEGIN}, source AS (
    SELECT c.summary, c.description, c.model, c.model_settings, c.context_window_limit,
           h.next_seq, h.window_ordinal, h.window_seq, h.summary_id, h.estimated_tokens, h.reported_tokens
    FROM agent.conversations c
    JOIN agent.conversation_heads h ON h.organization_id = :organization_id AND h.conversation_id = c.id
    WHERE c.organization_id = :organization_id AND c.id = :source_id AND c.agent_id = :agent_id AND c.deleted_at IS NULL
), kept AS (
    SELECT * FROM (
        SELECT s.ordinal, s.log_id, s.from_seq,
               least(coalesce(s.to_seq, source.next_seq - 1),
                     CASE WHEN s.ordinal = :last_ordinal::integer THEN :last_seq::bigint END) AS to_seq
        FROM source, agent.conversation_segments s
        WHERE s.organization_id = :organization_id AND s.conversation_id = :source_id
            AND s.ordinal <= coalesce(:last_ordinal::integer, s.ordinal)
    ) range WHERE from_seq <= to_seq
), own AS (
    SELECT coalesce(max(ordinal) + 1, 0) AS ordinal FROM kept
), view AS (
    SELECT source.*,
           (:last_ordinal::integer IS NULL
            OR (window_ordinal, window_seq) <= (:last_ordinal::integer, :last_seq::bigint))
           AND (summary_id IS NULL OR EXISTS (
               SELECT FROM kept JOIN agent.messages m ON m.organization_id = :organization_id AND m.log_id = kept.log_id
                   AND m.seq BETWEEN kept.from_seq AND kept.to_seq
               WHERE m.id = source.summary_id)) AS same
    FROM source
), asking AS (
    SELECT * FROM (
        SELECT m.id, m.content FROM kept CROSS JOIN LATERAL (
            SELECT id, content FROM agent.messages
            WHERE organization_id = :organization_id AND log_id = kept.log_id
                AND seq BETWEEN kept.from_seq AND kept.to_seq
                AND role IN ('assistant', 'tool')
            ORDER BY seq DESC LIMIT 1
        ) m ORDER BY kept.ordinal DESC LIMIT 1
    ) newest WHERE jsonb_path_exists(content, '$[*].gate')
), made AS (
    INSERT INTO agent.conversations ({_COLUMNS})
    SELECT :organization_id, :id, owner.id, :user_id, :isolated_labels::text[], :hidden::boolean, view.summary,
           view.description, view.model, view.model_settings, view.context_window_limit
    FROM owner, view
    ON CONFLICT DO NOTHING RETURNING *
), shared AS (
    INSERT INTO agent.conversation_segments (organization_id, conversation_id, ordinal, log_id, from_seq, to_seq)
    SELECT :organization_id, made.id, kept.ordinal, kept.log_id, kept.from_seq, kept.to_seq FROM made, kept
    UNION ALL SELECT :organization_id, made.id, own.ordinal, :log_id::uuid, 1, NULL FROM made, own
), head AS (
    INSERT INTO agent.conversation_heads
        (organization_id, conversation_id, log_id, window_ordinal, window_seq, summary_id, estimated_tokens,
         reported_tokens, pending_message_id)
    SELECT :organization_id, made.id, :log_id::uuid, CASE WHEN same THEN window_ordinal ELSE 0 END,
           CASE WHEN same AND window_ordinal < own.ordinal THEN window_seq ELSE 1 END,
           CASE WHEN same THEN summary_id END, estimated_tokens, reported_tokens, (SELECT id FROM asking)
    FROM made, view, own
)
SELECT made.*, NULL::timestamptz AS last_message_at FROM made
""")

# $1 organization, $2 conversation, $3 message
PLACE = """
SELECT s.ordinal, m.seq
FROM agent.messages m
JOIN agent.conversation_segments s ON s.organization_id = $1 AND s.conversation_id = $2 AND s.log_id = m.log_id
    AND m.seq BETWEEN s.from_seq AND coalesce(s.to_seq, 9223372036854775807)
WHERE m.organization_id = $1 AND m.id = $3
"""

# Deletion and erasure; all take $1 organization, $2 conversation ------------------------------------------------------

BURY = """
UPDATE agent.conversations SET deleted_at = now()
WHERE organization_id = $1 AND id = $2 AND id <> agent_id AND deleted_at IS NULL
RETURNING agent_id
"""

# In the order in which the turn path locks: running runs, the head, waiting runs.
STOP_RUNNING = """
UPDATE agent.runs SET cancel_requested = true
WHERE organization_id = $1 AND conversation_id = $2 AND status = 'running'
RETURNING id
"""
# Locks the head. By itself: what the next statement sees must be of after that.
FORGET_LINE = """
UPDATE agent.conversation_heads SET waiting = 0 WHERE organization_id = $1 AND conversation_id = $2
"""
EMPTY_LINE = "DELETE FROM agent.conversation_line WHERE organization_id = $1 AND conversation_id = $2"
STOP_WAITING = """
UPDATE agent.runs SET status = 'cancelled', stop_reason = 'cancelled', completed_at = clock_timestamp()
WHERE organization_id = $1 AND conversation_id = $2 AND status = 'created'
"""

# $3 id, $4 kind, $5 payload, $6 delay in seconds
ORDER = """
INSERT INTO agent.outbox (organization_id, id, kind, subject_id, payload, not_before)
VALUES ($1, $3, $4, $2, $5::jsonb, now() + make_interval(secs => $6))
"""

EXISTS = "SELECT EXISTS (SELECT FROM agent.conversations WHERE organization_id = $1 AND id = $2)"

# Some of the messages that it shows, or showed before a rewind, and nobody else has; its own come to an end with it,
# and so do those of one that was deleted before and of which it was the last fork. What was said in one that is there
# still and was reset since stays: its agent may search it. $3 most
ERASE_MESSAGES = """
DELETE FROM agent.messages WHERE organization_id = $1 AND (log_id, seq) IN (
    SELECT m.log_id, m.seq
    FROM agent.conversations c
    JOIN LATERAL (
        SELECT log_id FROM agent.conversation_segments WHERE organization_id = $1 AND conversation_id = c.id
        UNION SELECT log_id FROM agent.rewound_segments WHERE organization_id = $1 AND conversation_id = c.id
    ) s ON true
    JOIN agent.messages m ON m.organization_id = $1 AND m.log_id = s.log_id
    WHERE c.organization_id = $1 AND c.id = $2 AND c.deleted_at IS NOT NULL
        AND NOT EXISTS (
            SELECT FROM agent.present_ranges other
            WHERE other.organization_id = $1 AND other.log_id = m.log_id
                AND m.seq BETWEEN other.from_seq AND other.to_seq)
        AND NOT EXISTS (
            SELECT FROM agent.present_conversations p WHERE p.organization_id = $1 AND p.id = m.conversation_id)
    LIMIT $3
)
"""
# Facts, steps and keys go with their runs, and so do the prompts compiled for them: those that name the conversation.
# $3 most, $4 the conversation as prompts name it
ERASE_RUNS = """
WITH gone AS (
    SELECT r.id, r.agent_id FROM agent.runs r
    JOIN agent.conversations c ON c.organization_id = $1 AND c.id = r.conversation_id AND c.deleted_at IS NOT NULL
    WHERE r.organization_id = $1 AND r.conversation_id = $2 LIMIT $3
), prompts AS (
    DELETE FROM agent.compiled_prompts p USING gone, agent.steps s
    WHERE s.organization_id = $1 AND s.run_id = gone.id
        AND p.organization_id = $1 AND p.agent_id = gone.agent_id AND p.hash = s.prompt_hash
        AND position($4::text IN p.text) > 0
)
DELETE FROM agent.runs r USING gone WHERE r.organization_id = $1 AND r.id = gone.id
"""
# Head, segments and line go with it, and the prompt that no run was given. $3 the conversation as prompts name it
ERASE = """
WITH prompts AS (
    DELETE FROM agent.compiled_prompts p USING agent.conversation_heads h, agent.conversations c
    WHERE c.organization_id = $1 AND c.id = $2 AND c.deleted_at IS NOT NULL
        AND h.organization_id = $1 AND h.conversation_id = $2
        AND p.organization_id = $1 AND p.agent_id = c.agent_id AND p.hash = h.prompt_hash
        AND position($3::text IN p.text) > 0
)
DELETE FROM agent.conversations WHERE organization_id = $1 AND id = $2 AND deleted_at IS NOT NULL
"""
