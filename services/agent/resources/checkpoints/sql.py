"""Statements about checkpoints, rewinds and forks. None of them costs more when there are more messages."""

from services.agent.resources.agents.model.settings import SETTABLE
from services.common.core.statements import Statement

# What a message that ends at a checkpoint is told with. %s: the row of the message with its kind; $1 organization
_DETAILS = """
    LEFT JOIN LATERAL (
        (SELECT st.run_id, st.number, st.block_versions FROM agent.steps st
         WHERE {m}.kind = 'step' AND st.organization_id = $1 AND st.id = {m}.step_id)
        UNION ALL
        (SELECT st.run_id, st.number, st.block_versions FROM agent.steps st
         WHERE {m}.kind = 'run' AND st.organization_id = $1 AND st.run_id = {m}.run_id AND st.block_versions <> '{{}}'
         ORDER BY st.number DESC LIMIT 1)
        UNION ALL
        (SELECT st.run_id, st.number, st.block_versions FROM agent.steps st
         WHERE {m}.kind = 'input' AND st.organization_id = $1 AND st.run_id = {m}.run_id AND st.block_versions <> '{{}}'
         ORDER BY st.number LIMIT 1)
    ) seen ON true
    LEFT JOIN LATERAL (
        SELECT u.content FROM agent.messages u
        WHERE u.organization_id = $1 AND u.run_id = {m}.run_id AND u.fact = 1 AND u.role = 'user'
        ORDER BY u.seq LIMIT 1
    ) said ON true
"""
_SHOWN = """{m}.kind, {m}.id, {m}.role, {m}.content, {m}.name, {m}.otid, {m}.sender_id, {m}.run_id, {m}.step_id,
    {m}.seq, {m}.created_at, {m}.agent_id, {m}.conversation_id, seen.run_id AS seen_run_id, seen.number AS seen_number,
    seen.block_versions AS seen, said.content AS said"""

# Whether a message is the last of its run's input, and nobody answered a call with it. A run's messages are neighbours
# in one log. n: the message after it
_ENDS_INPUT = """m.fact = 1 AND m.role IN ('user', 'system') AND (n.run_id, n.fact) IS DISTINCT FROM (m.run_id, 1)
    AND NOT EXISTS (
        SELECT FROM agent.messages a
        WHERE a.organization_id = $1 AND a.run_id = m.run_id AND a.fact = 1 AND a.role = 'approval')"""
_NEXT = "LEFT JOIN agent.messages n ON n.organization_id = $1 AND n.log_id = m.log_id AND n.seq = m.seq + 1"
_RUN = "LEFT JOIN agent.runs r ON r.organization_id = $1 AND r.id = m.run_id"
# A run that was erased had ended.
_RUN_HAS_ENDED = "(r.id IS NULL OR r.completed_at IS NOT NULL)"

# Those of a conversation before a place, newest first. $2 conversation, $3 ordinal and $4 seq of the place, $5 most
LIST = f"""
SELECT m.ordinal, {_SHOWN.format(m="m")}
FROM (
    SELECT s.ordinal, found.*
    FROM agent.conversation_segments s
    CROSS JOIN LATERAL (
        SELECT m.*, CASE WHEN n.run_id IS DISTINCT FROM m.run_id AND {_RUN_HAS_ENDED} THEN 'run'
                         WHEN m.role = 'tool' THEN 'step' ELSE 'input' END AS kind
        FROM agent.messages m {_NEXT} {_RUN}
        WHERE m.organization_id = $1 AND m.log_id = s.log_id AND m.run_id IS NOT NULL AND m.seq >= s.from_seq
            AND m.seq <= coalesce(s.to_seq, 9223372036854775807) AND (s.ordinal < $3 OR m.seq < $4)
            AND (n.run_id IS DISTINCT FROM m.run_id AND {_RUN_HAS_ENDED}
                 OR m.role = 'tool' AND m.step_id IS NOT NULL
                 OR {_ENDS_INPUT})
        ORDER BY m.seq DESC LIMIT $5
    ) found
    WHERE s.organization_id = $1 AND s.conversation_id = $2 AND s.ordinal <= $3
    ORDER BY s.ordinal DESC, found.seq DESC LIMIT $5
) m {_DETAILS.format(m="m")}
ORDER BY m.ordinal DESC, m.seq DESC
"""

# By kind: the logs and the places there of a checkpoint's last message. What waited at a run's end is answered in its
# name, once in each conversation that goes on from there. $2 id
FIND = {
    "run": f"""
        SELECT m.log_id, max(m.seq) AS seq FROM agent.messages m {_RUN}
        WHERE m.organization_id = $1 AND m.run_id = $2 AND {_RUN_HAS_ENDED} GROUP BY m.log_id""",
    "step": """
        SELECT m.log_id, max(m.seq) AS seq FROM agent.messages m
        WHERE m.organization_id = $1 AND m.step_id = $2 AND m.role = 'tool' AND m.run_id IS NOT NULL
        GROUP BY m.log_id""",
    "input": f"""
        SELECT m.log_id, m.seq FROM agent.messages m {_NEXT}
        WHERE m.organization_id = $1 AND m.id = $2 AND {_ENDS_INPUT}""",
}

# $2 log, $3 seq, $4 kind
DETAILS = f"""
SELECT 0 AS ordinal, {_SHOWN.format(m="m")}
FROM (
    SELECT *, $4::text AS kind FROM agent.messages WHERE organization_id = $1 AND log_id = $2 AND seq = $3
) m {_DETAILS.format(m="m")}
"""

# $2 conversation
SEGMENTS = """
SELECT ordinal, log_id, from_seq, to_seq FROM agent.conversation_segments
WHERE organization_id = $1 AND conversation_id = $2 ORDER BY ordinal
"""
# What the conversation showed before the newest rewind that left a message behind. $2 conversation, $3 log, $4 seq
LEFT_BEHIND = """
SELECT log_id, from_seq, to_seq FROM agent.rewound_segments
WHERE organization_id = $1 AND conversation_id = $2 AND rewind_id = (
    SELECT r.id FROM agent.rewound_segments s
    JOIN agent.conversation_rewinds r ON r.organization_id = $1 AND r.conversation_id = $2 AND r.id = s.rewind_id
    WHERE s.organization_id = $1 AND s.conversation_id = $2 AND s.log_id = $3
        AND $4::bigint BETWEEN s.from_seq AND s.to_seq
    ORDER BY r.created_at DESC, r.id DESC LIMIT 1)
ORDER BY ordinal
"""

_RANGES = """unnest($2::uuid[], $3::bigint[], $4::bigint[]) WITH ORDINALITY
    AS s(log_id, from_seq, to_seq, number)"""

# The newest summary in these ranges, and the message that was kept first then; by the range's number from 0.
# $2 logs, $3 from, $4 to
VIEW = f"""
WITH ranges AS (SELECT * FROM {_RANGES}), summary AS (
    SELECT m.id, m.run_id, m.fact
    FROM ranges s CROSS JOIN LATERAL (
        SELECT id, run_id, fact, seq FROM agent.messages
        WHERE organization_id = $1 AND log_id = s.log_id AND role = 'summary' AND seq BETWEEN s.from_seq AND s.to_seq
        ORDER BY seq DESC LIMIT 1
    ) m ORDER BY s.number DESC LIMIT 1
)
SELECT s.number - 1 AS segment, k.seq, summary.id AS summary_id
FROM summary
JOIN agent.facts f ON f.organization_id = $1 AND f.run_id = summary.run_id AND f.number = summary.fact
JOIN agent.messages k ON k.organization_id = $1 AND k.id = (f.body ->> 'kept_from')::uuid
JOIN ranges s ON s.log_id = k.log_id AND k.seq BETWEEN s.from_seq AND s.to_seq
WHERE f.kind = 'compacted'
"""

# Rewind: in one transaction, $2 conversation -----------------------------------------------------------------------

LOCK = """
SELECT h.active_run_id, h.waiting, h.next_seq
FROM agent.conversation_heads h
JOIN agent.present_conversations c ON c.organization_id = $1 AND c.id = h.conversation_id
WHERE h.organization_id = $1 AND h.conversation_id = $2 FOR UPDATE OF h
"""
# $3 id
BEGUN = """
SELECT * FROM agent.begun_rewinds WHERE organization_id = $1 AND conversation_id = $2 AND id = $3
"""
# $3 id, $4 agent, $5 and $6 where to, $7 plan, $8 user, $9 and $10 kind and payload of the order to finish it,
# $11 seconds until that is due
BEGIN = """
WITH begun AS (
    INSERT INTO agent.begun_rewinds
        (organization_id, conversation_id, id, agent_id, to_kind, to_id, plan, created_by_id)
    VALUES ($1, $2, $3, $4, $5, $6, $7::jsonb, $8)
), ordered AS (
    INSERT INTO agent.outbox (organization_id, id, kind, subject_id, payload, not_before)
    VALUES ($1, $3, $9, $2, $10::jsonb, now() + make_interval(secs => $11))
)
UPDATE agent.conversation_heads SET active_run_id = $3 WHERE organization_id = $1 AND conversation_id = $2
"""
# $3 id
LET_GO = """
WITH ordered AS (DELETE FROM agent.outbox WHERE organization_id = $1 AND id = $3)
DELETE FROM agent.begun_rewinds WHERE organization_id = $1 AND conversation_id = $2 AND id = $3
"""
# $3 id
REWIND = """
SELECT id, to_kind, to_id, left_kind, left_id, blocks, created_by_id, created_at FROM agent.conversation_rewinds
WHERE organization_id = $1 AND conversation_id = $2 AND id = $3
"""
# $3 id, $4 and $5 where to, $6 and $7 what is left, $8 blocks, $9 user
KEEP = """
INSERT INTO agent.conversation_rewinds
    (organization_id, conversation_id, id, to_kind, to_id, left_kind, left_id, blocks, created_by_id)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8::jsonb, $9)
RETURNING id, to_kind, to_id, left_kind, left_id, blocks, created_by_id, created_at
"""
# $3 rewind, $4 logs, $5 from, $6 to
KEEP_SEGMENTS = """
INSERT INTO agent.rewound_segments (organization_id, conversation_id, rewind_id, ordinal, log_id, from_seq, to_seq)
SELECT $1, $2, $3, s.number - 1, s.log_id, s.from_seq, s.to_seq
FROM unnest($4::uuid[], $5::bigint[], $6::bigint[]) WITH ORDINALITY AS s(log_id, from_seq, to_seq, number)
"""
# All ordinals are new: a turn that had begun to wait for the head before sees none of the old segments.
# $3 logs, $4 from, $5 to, $6 first ordinal
REPLACE = """
WITH gone AS (DELETE FROM agent.conversation_segments WHERE organization_id = $1 AND conversation_id = $2)
INSERT INTO agent.conversation_segments (organization_id, conversation_id, ordinal, log_id, from_seq, to_seq)
SELECT $1, $2, $6 + s.number - 1, s.log_id, s.from_seq, s.to_seq
FROM unnest($3::uuid[], $4::bigint[], $5::bigint[]) WITH ORDINALITY AS s(log_id, from_seq, to_seq, number)
"""
# $3 log, $4 next seq, $5 and $6 beginning of the window, $7 summary
MOVE_HEAD = """
UPDATE agent.conversation_heads
SET log_id = $3, next_seq = $4, window_ordinal = $5, window_seq = $6, summary_id = $7, pending_message_id = NULL,
    approval_due = NULL, prompt_hash = NULL, prompt_versions = NULL
WHERE organization_id = $1 AND conversation_id = $2
"""
# $3 and $4 time and id of the last one told (null: none), $5 most
REWINDS = """
SELECT id, to_kind, to_id, left_kind, left_id, blocks, created_by_id, created_at FROM agent.conversation_rewinds
WHERE organization_id = $1 AND conversation_id = $2 AND ($3::timestamptz IS NULL OR (created_at, id) < ($3, $4))
ORDER BY created_at DESC, id DESC LIMIT $5
"""

# Forks: each is one statement ----------------------------------------------------------------------------------------

_SHARED = """unnest(:logs::uuid[], :firsts::bigint[], :lasts::bigint[]) WITH ORDINALITY
    AS s(log_id, from_seq, to_seq, number)"""
# logs, firsts and lasts: the segments that are shared; log_id: a log of its own, from first_seq. `made` is the new
# conversation
_BEGUN = f"""shared AS (
    INSERT INTO agent.conversation_segments (organization_id, conversation_id, ordinal, log_id, from_seq, to_seq)
    SELECT :organization_id, made.id, s.number - 1, s.log_id, s.from_seq, s.to_seq FROM made, {_SHARED}
    UNION ALL SELECT :organization_id, made.id, cardinality(:logs::uuid[]), :log_id::uuid, :first_seq::bigint, NULL
    FROM made
), head AS (
    INSERT INTO agent.conversation_heads
        (organization_id, conversation_id, log_id, next_seq, window_ordinal, window_seq, summary_id, estimated_tokens,
         reported_tokens)
    SELECT :organization_id, made.id, :log_id, :first_seq, :window_segment::integer, :window_seq::bigint,
        :summary_id::uuid, source.estimated_tokens, source.reported_tokens
    FROM made, source
)"""
# Locked, so that nobody takes the messages away before they are shared
_SOURCE = """source AS (
    SELECT c.agent_id, c.summary, c.description AS own_description, c.model AS own_model,
           c.model_settings AS own_model_settings, c.context_window_limit AS own_limit, h.estimated_tokens,
           h.reported_tokens, a.*
    FROM agent.conversations c
    JOIN agent.conversation_heads h ON h.organization_id = :organization_id AND h.conversation_id = c.id
    JOIN agent.agents a ON a.organization_id = :organization_id AND a.id = c.agent_id AND a.deleted_at IS NULL
    WHERE c.organization_id = :organization_id AND c.id = :source_id AND c.deleted_at IS NULL
    FOR SHARE OF c, a
)"""
_RESERVATION = """reservation AS (
    DELETE FROM agent.outbox
    WHERE organization_id = :organization_id AND id = :reservation_id AND attempts = 0 RETURNING id
)"""

# reservation_id: null where none is needed
FORK_CONVERSATION = Statement(f"""
WITH {_RESERVATION}, {_SOURCE}, made AS (
    INSERT INTO agent.conversations (organization_id, id, agent_id, created_by_id, isolated_labels, hidden, summary,
                                     description, model, model_settings, context_window_limit)
    SELECT :organization_id, :id::uuid, agent_id, :user_id::uuid, :isolated_labels::text[], :hidden::boolean,
           summary, own_description, own_model, own_model_settings, own_limit
    FROM source WHERE :reservation_id::uuid IS NULL OR EXISTS (SELECT FROM reservation)
    ON CONFLICT DO NOTHING RETURNING *
), {_BEGUN}
SELECT made.*, NULL::timestamptz AS last_message_at FROM made
""")

# Settings that a fork does not copy from its agent's row: those that the conversation may have of its own, and those
# that say what the agent is part of.
_APART = frozenset(
    [
        "name",
        "model",
        "model_settings",
        "context_window_limit",
        "enable_sleeptime",
        "template_id",
        "base_template_id",
        "deployment_id",
        "entity_id",
    ]
)
_SAME = ", ".join(name for name in SETTABLE if name not in _APART)

# name: null for that of the other
FORK_AGENT = Statement(f"""
WITH {_RESERVATION}, {_SOURCE}, forked AS (
    INSERT INTO agent.agents (organization_id, id, created_by_id, last_updated_by_id, name, model, model_settings,
                              context_window_limit, {_SAME})
    SELECT :organization_id, :id::uuid, :user_id::uuid, :user_id,
           coalesce(:name::text, left(name, 249) || ' (fork)'), coalesce(own_model, model),
           coalesce(own_model_settings, model_settings), coalesce(own_limit, context_window_limit), {_SAME}
    FROM source, reservation
    ON CONFLICT DO NOTHING RETURNING *
), made AS (
    INSERT INTO agent.conversations (organization_id, id, agent_id, created_by_id)
    SELECT :organization_id, id, id, :user_id FROM forked RETURNING *
), {_BEGUN}, inherited AS (
    INSERT INTO agent.inherited_segments (organization_id, agent_id, ordinal, log_id, from_seq, to_seq)
    SELECT :organization_id, made.id, s.number - 1, s.log_id, s.from_seq, s.to_seq FROM made, {_SHARED}
), noted AS (
    INSERT INTO agent.agent_forks (organization_id, agent_id, source_agent_id, message_id, block_ids, archive_ids)
    SELECT :organization_id, made.id, source.agent_id, :message_id::uuid, :block_ids::uuid[], :archive_ids::uuid[]
    FROM made, source
)
SELECT id FROM made
""")
# $2 agent
FORKED = """
SELECT message_id, block_ids, archive_ids FROM agent.agent_forks WHERE organization_id = $1 AND agent_id = $2
"""
