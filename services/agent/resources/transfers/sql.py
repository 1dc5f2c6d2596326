"""Statements about agents on their way in and out."""

from functools import lru_cache

from services.common.core.statements import Statement

# Until it is stored, a new agent is one import's: a reservation that says whose. What was not renewed for a minute was
# left by a process that died, and is whoever's comes next; else its parts are swept within the hour.
CLAIM = Statement("""
INSERT INTO agent.outbox AS o (organization_id, id, kind, subject_id, payload, not_before)
SELECT :organization_id, :reservation_id, 'purge_orphan', :agent_id,
    jsonb_build_object('user_id', :user_id::text, 'import_id', :import_id::text), now() + interval '60 minutes'
WHERE NOT EXISTS (SELECT FROM agent.agents WHERE organization_id = :organization_id AND id = :agent_id)
ON CONFLICT (organization_id, id) DO UPDATE SET payload = excluded.payload, not_before = excluded.not_before
WHERE o.attempts = 0 AND (o.payload->>'import_id' = :import_id::text OR o.not_before < now() + interval '59 minutes')
RETURNING id
""")
IS_TAKEN = "SELECT EXISTS (SELECT FROM agent.agents WHERE organization_id = $1 AND id = $2)"
# $2 import
RENEW = """
UPDATE agent.outbox SET not_before = now() + interval '60 minutes'
WHERE organization_id = $1 AND kind = 'purge_orphan' AND payload->>'import_id' = $2 AND subject_id = ANY($3::uuid[])
    AND attempts = 0
RETURNING subject_id
"""
# $2 reservation, $3 import
USE_CLAIM = """
DELETE FROM agent.outbox WHERE organization_id = $1 AND id = $2 AND payload->>'import_id' = $3 AND attempts = 0
RETURNING id
"""

# An agent without one has an empty conversation of its own: its head says so until the end.
# created_at: null for now
CONVERSATION = Statement("""
WITH made AS (
    INSERT INTO agent.conversations (organization_id, id, agent_id, created_by_id, summary, model, model_settings,
                                     isolated_labels, created_at, updated_at)
    VALUES (:organization_id, :id, :agent_id, :user_id, :summary, :model, :model_settings::jsonb,
        :isolated_labels::text[], coalesce(:created_at::timestamptz, now()),
            coalesce(:created_at::timestamptz, now()))
    RETURNING id
), segment AS (
    INSERT INTO agent.conversation_segments (organization_id, conversation_id, ordinal, log_id, from_seq)
    SELECT :organization_id, id, 0, :log_id::uuid, 1 FROM made
)
INSERT INTO agent.conversation_heads (organization_id, conversation_id, log_id) SELECT :organization_id, id,
    :log_id::uuid FROM made
""")

# Made from no version of anything: the next turn compiles another. $2 agent, $3 conversation, $4 hash, $5 text
PROMPT = """
WITH stored AS (
    INSERT INTO agent.compiled_prompts (organization_id, agent_id, hash, text) VALUES ($1, $2, $4, $5)
    ON CONFLICT DO NOTHING
)
UPDATE agent.conversation_heads SET prompt_hash = $4 WHERE organization_id = $1 AND conversation_id = $3
"""

# What waits for the client waits for ever: a rule answers once.
# $3 next seq, $4 first seq of the window, $5 summary, $6 message whose calls wait, $7 last message at
HEAD = """
UPDATE agent.conversation_heads
SET next_seq = $3, window_seq = $4, summary_id = $5, pending_message_id = $6, last_message_at = $7
WHERE organization_id = $1 AND conversation_id = $2
"""

# $2 agent, $3 identities
IDENTITIES = """
INSERT INTO agent.agent_identities (organization_id, agent_id, identity_id)
SELECT $1, $2, i.id FROM agent.identities i WHERE i.organization_id = $1 AND i.id = ANY($3::uuid[])
RETURNING identity_id
"""

GROUP = Statement("""
WITH made AS (
    INSERT INTO agent.groups (organization_id, id, description, manager_type, manager_agent_id, manager_settings,
                              shared_block_ids, created_by_id, last_updated_by_id, template_id, base_template_id,
                              deployment_id)
    VALUES (:organization_id, :id, :description, :manager_type, :manager_agent_id, :manager_settings::jsonb,
        :shared_block_ids::uuid[], :user_id, :user_id, :template_id, :base_template_id, :deployment_id)
    RETURNING id
)
INSERT INTO agent.group_agents (organization_id, group_id, agent_id, position)
SELECT :organization_id, made.id, member.agent_id, member.place - 1
FROM made, unnest(:agent_ids::uuid[]) WITH ORDINALITY AS member (agent_id, place)
""")

# $2 agents
FIND = """
SELECT id FROM agent.agents WHERE organization_id = $1 AND id = ANY($2::uuid[]) AND deleted_at IS NULL ORDER BY id
"""
# $2 agent
HAS_AGENT = """
SELECT EXISTS (SELECT FROM agent.agents WHERE organization_id = $1 AND id = $2 AND deleted_at IS NULL)
"""
# $2 agent, $3 conversation
HAS_CONVERSATION = """
SELECT EXISTS (
    SELECT FROM agent.conversations WHERE organization_id = $1 AND id = $3 AND agent_id = $2 AND deleted_at IS NULL)
"""

# $2 conversation, $3 ordinal and $4 seq of the last one read, $5 most
HISTORY = """
SELECT s.ordinal, m.id, m.role, m.content, m.name, m.otid, m.sender_id, m.run_id, m.step_id, m.seq, m.created_at
FROM agent.conversation_segments s
CROSS JOIN LATERAL (
    SELECT * FROM agent.messages
    WHERE organization_id = $1 AND log_id = s.log_id
        AND seq >= greatest(s.from_seq, CASE WHEN s.ordinal = $3 THEN $4 + 1 END)
        AND seq <= coalesce(s.to_seq, 9223372036854775807)
    ORDER BY seq LIMIT $5
) m
WHERE s.organization_id = $1 AND s.conversation_id = $2 AND s.ordinal >= $3
ORDER BY s.ordinal, m.seq LIMIT $5
"""


@lru_cache
def insert_agent(columns: tuple[str, ...]) -> str:
    """Returns the statement for an agent's row with these columns, whose values are its parameters."""
    places = ", ".join(f"${place}" for place in range(1, len(columns) + 1))
    return f"INSERT INTO agent.agents ({', '.join(columns)}) VALUES ({places})"
