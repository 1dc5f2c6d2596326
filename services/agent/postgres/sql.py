"""The statements of the turn path. Each is one round trip; asyncpg prepares them once per connection."""

from services.common.core.statements import Statement

LEASE = "interval '2.5 seconds'"

# What a run keeps of its agent and its conversation; see fact_log.settings_from_body.
_SETTINGS = """jsonb_build_object(
        'agent_version', a.version, 'agent_type', a.agent_type, 'model', coalesce(c.model, a.model),
        'embedding', a.embedding, 'system', a.system,
        'context_window_limit', least(coalesce(c.context_window_limit, a.context_window_limit), l.tokens),
        'tool_ids', to_jsonb(a.tool_ids), 'tool_rules', a.tool_rules, 'timezone', a.timezone,
        'model_settings', coalesce(c.model_settings, a.model_settings), 'response_format', a.response_format,
        'compaction_settings', a.compaction_settings, 'message_buffer_autoclear', a.message_buffer_autoclear,
        'recall_passages', a.recall_passages, 'max_files_open', a.max_files_open,
        'per_file_view_window_char_limit', a.per_file_view_window_char_limit, 'agent_name', a.name,
        'enable_sleeptime', coalesce(a.enable_sleeptime, false))"""


def _agent(organization: str, conversation: str, agent: str, options: str) -> str:
    """Returns the subquery of the agent of a conversation with what its run keeps; by the names of parameters."""
    return f"""
    SELECT a.id AS agent_id, jsonb_build_object('settings', {_SETTINGS}, 'options', {options}::jsonb) AS body,
           sha256(convert_to(a.system, 'UTF8')) AS system_hash
    FROM agent.conversations c
    JOIN agent.agents a ON a.organization_id = {organization} AND a.id = c.agent_id AND a.deleted_at IS NULL
    LEFT JOIN agent.learned_windows l
        ON l.organization_id = {organization} AND l.model = coalesce({options}::jsonb ->> 'model', c.model, a.model)
        AND l.learned_at > now() - interval '7 days'
    WHERE c.organization_id = {organization} AND c.id = {conversation} AND c.agent_id = {agent} AND c.deleted_at IS NULL
"""


# The system prompt is stored once, and the first fact of a run names it.
_NAMED = "body #- '{settings,system}' || jsonb_build_object('system_hash', encode(system_hash, 'hex'))"

MESSAGE_COLUMNS = "id, role, content, name, otid, sender_id, run_id, step_id, fact, seq, created_at"
_WINDOW_COLUMNS = ", ".join(f"m.{name}" for name in MESSAGE_COLUMNS.split(", "))


# The newest messages of a conversation from the beginning of its window on, newest first, and last the summary of what
# was before: each segment is read backwards by its key, so that neither the age of the conversation nor the length of
# its window costs a sort. The order is that of the segments, one after the other: with a sort around it all of them
# would be read before the first is taken. `h` is the row of the head.
def _window(organization: str, conversation: str, most: str) -> str:
    """Returns the subquery of a window; by the names of parameters."""
    return f"""
    (SELECT {_WINDOW_COLUMNS} FROM (
        SELECT ordinal, log_id, from_seq, to_seq FROM agent.conversation_segments
        WHERE organization_id = {organization} AND conversation_id = {conversation} AND ordinal >= h.window_ordinal
        ORDER BY ordinal DESC
     ) s
     CROSS JOIN LATERAL (
        SELECT * FROM agent.messages
        WHERE organization_id = {organization} AND log_id = s.log_id AND role <> 'summary'
            AND seq >= CASE WHEN s.ordinal = h.window_ordinal THEN greatest(h.window_seq, s.from_seq) ELSE s.from_seq END
            AND seq <= coalesce(s.to_seq, 9223372036854775807)
        ORDER BY seq DESC LIMIT {most}
     ) m
     LIMIT {most})
    UNION ALL
    (SELECT {_WINDOW_COLUMNS} FROM agent.messages m WHERE m.organization_id = {organization} AND m.id = h.summary_id)
"""


def messages_in(parameter: str) -> str:
    """Returns the rows of `rows.message_to_row` in a parameter, as `m`."""
    return f"""jsonb_to_recordset({parameter}::jsonb) AS m(
        place int, id uuid, role text, content jsonb, name text, otid text, sender_id text, search text,
        search_more jsonb, step_id uuid, fact int, created_at timestamptz)"""


INSERT_MESSAGES = """
    INSERT INTO agent.messages (organization_id, log_id, seq, id, agent_id, conversation_id, run_id, step_id, fact, role,
                                content, name, otid, sender_id, search, search_more, created_at)
"""

MESSAGE_VALUES = """m.role, m.content, m.name, m.otid, m.sender_id,
           to_tsvector('english', m.search) || to_tsvector('simple', m.search),
           (SELECT array_agg(to_tsvector('english', t) || to_tsvector('simple', t))
            FROM jsonb_array_elements_text(m.search_more) t), m.created_at"""

# A request on an idle conversation, all at once: it gets the turn, its run begins, its input is in the log, and the
# window before it is read. The row lock of the head orders all who ask; one that finds the conversation busy, or
# waiting for the client (`fits`: that is known and fits, or does not matter), changes nothing. A repeated request violates a
# key. seconds: its time limit; most_messages: of the window.
START = Statement(f"""
WITH old AS (
    SELECT active_run_id, pending_message_id FROM agent.conversation_heads
    WHERE organization_id = :organization_id AND conversation_id = :conversation_id FOR UPDATE
), its_agent AS ({_agent(":organization_id", ":conversation_id", ":agent_id", ":options")}), head AS (
    UPDATE agent.conversation_heads h
    SET active_run_id = :run_id, next_seq = h.next_seq + :message_count, last_message_at = :created_at
    FROM old, its_agent
    WHERE h.organization_id = :organization_id AND h.conversation_id = :conversation_id
        AND old.active_run_id IS NULL AND (old.pending_message_id IS NULL OR :fits)
    RETURNING h.log_id, h.next_seq - :message_count AS first_seq, h.window_ordinal, h.window_seq, h.summary_id, h.prompt_versions,
              h.estimated_tokens, h.reported_tokens
), run AS (
    INSERT INTO agent.runs (organization_id, id, agent_id, conversation_id, user_id, status, worker_id, home_id, fence,
                            facts, deadline, ancestors, ceiling, request_hash, options, created_at, started_at)
    SELECT :organization_id, :run_id, :agent_id, :conversation_id, :user_id, 'running', :worker_id, :worker_id, 1, 1, now() + make_interval(secs => :seconds), :ancestors, :ceiling::jsonb, :request_hash, :options::jsonb, :created_at, :created_at
    FROM head
), keys AS (
    INSERT INTO agent.run_keys (organization_id, key, run_id) SELECT :organization_id, key, :run_id FROM head, unnest(:keys::text[]) AS key
), fact AS (
    INSERT INTO agent.facts (organization_id, run_id, number, kind, schema_version, fence, sequence, body)
    SELECT :organization_id, :run_id, 1, 'user_spoke', :schema_version, 1, 0, {_NAMED} FROM head, its_agent
), prompt AS (
    INSERT INTO agent.system_prompts (organization_id, agent_id, hash, text)
    SELECT :organization_id, its_agent.agent_id, system_hash, body #>> '{{settings,system}}' FROM head, its_agent
    ON CONFLICT DO NOTHING
), said AS (
    {INSERT_MESSAGES}
    SELECT :organization_id, head.log_id, head.first_seq + m.place, m.id, :agent_id, :conversation_id, :run_id, NULL, 1, {MESSAGE_VALUES}
    FROM head, {messages_in(":messages")}
)
SELECT old.active_run_id, old.pending_message_id, its_agent.agent_id, its_agent.body, h.log_id, h.first_seq,
       h.prompt_versions, h.estimated_tokens, h.reported_tokens,
       (SELECT json_agg(w) FROM ({_window(":organization_id", ":conversation_id", ":most_messages")}) w) AS shown
FROM old LEFT JOIN its_agent ON true LEFT JOIN head h ON true
""")

# What a run would begin with. $1 organization, $2 conversation, $3 options, $4 agent
PEEK = f"""
SELECT its_agent.body, h.next_seq, h.prompt_versions, h.estimated_tokens, h.reported_tokens
FROM ({_agent("$1", "$2", "$4", "$3")}) its_agent
JOIN agent.conversation_heads h ON h.organization_id = $1 AND h.conversation_id = $2
"""

# Who has the turn of a conversation, and who waits for what. $1 organization, $2 conversation
LOCK_HEAD = """
SELECT active_run_id, pending_message_id, waiting FROM agent.conversation_heads
WHERE organization_id = $1 AND conversation_id = $2 FOR UPDATE
"""

# A request takes its place in the line. front: before all others; seconds: its time limit.
ENTER_LINE = Statement("""
WITH head AS (
    UPDATE agent.conversation_heads SET waiting = waiting + 1 WHERE organization_id = :organization_id AND conversation_id = :conversation_id
), run AS (
    INSERT INTO agent.runs (organization_id, id, agent_id, conversation_id, user_id, status, home_id, deadline,
                            ancestors, ceiling, request_hash, options, background, created_at)
    VALUES (:organization_id, :run_id, :agent_id, :conversation_id, :user_id, 'created', :home_id, now() + make_interval(secs => :seconds), :ancestors, :ceiling::jsonb, :request_hash, :options::jsonb, :background, :created_at)
), keys AS (
    INSERT INTO agent.run_keys (organization_id, key, run_id) SELECT :organization_id, key, :run_id FROM unnest(:keys::text[]) AS key
), labels AS (
    INSERT INTO agent.run_keys (organization_id, key, run_id) SELECT :organization_id, key, :run_id FROM unnest(:labels::text[]) AS key
    ON CONFLICT (organization_id, key) DO UPDATE SET run_id = excluded.run_id
)
INSERT INTO agent.conversation_line (organization_id, conversation_id, run_id, schema_version, input, front)
VALUES (:organization_id, :conversation_id, :run_id, :schema_version, :input::jsonb, :front)
""")

# A run whose turn has come puts its input into the log. The run's row first, as everywhere: zero rows means that
# another owner has it, and everything is rolled back. $1 organization, $2 run, $3 fence
BEGIN_RUN = """
UPDATE agent.runs SET facts = 1
WHERE organization_id = $1 AND id = $2 AND fence = $3 AND status = 'running' AND facts = 0
RETURNING id
"""

# $1 organization, $2 conversation, $3 run
TAKE_INPUT = """
DELETE FROM agent.conversation_line WHERE organization_id = $1 AND conversation_id = $2 AND run_id = $3
RETURNING schema_version, input
"""

# messages: their number.
BEGIN_HEAD = Statement(f"""
WITH its_agent AS ({_agent(":organization_id", ":conversation_id", ":agent_id", ":options")}), head AS (
    UPDATE agent.conversation_heads SET next_seq = next_seq + :messages, last_message_at = clock_timestamp()
    WHERE organization_id = :organization_id AND conversation_id = :conversation_id AND active_run_id = :run_id
    RETURNING log_id, next_seq - :messages AS first_seq, prompt_versions, estimated_tokens, reported_tokens
)
SELECT head.*, its_agent.agent_id, its_agent.body, its_agent.system_hash FROM head, its_agent
""")

FIRST_FACT = Statement(f"""
WITH fact AS (
    INSERT INTO agent.facts (organization_id, run_id, number, kind, schema_version, fence, sequence, body)
    SELECT :organization_id, :run_id, 1, 'user_spoke', :schema_version, :fence, 0, {_NAMED}
    FROM (SELECT :settings::jsonb AS body, :system_hash::bytea AS system_hash) named
), prompt AS (
    INSERT INTO agent.system_prompts (organization_id, agent_id, hash, text)
    VALUES (:organization_id, :agent_id, :system_hash, :settings::jsonb #>> '{{settings,system}}')
    ON CONFLICT DO NOTHING
)
{INSERT_MESSAGES}
SELECT :organization_id, :log_id, :first_seq + m.place, m.id, :agent_id, :conversation_id, :run_id, NULL, 1,
       {MESSAGE_VALUES}
FROM {messages_in(":messages")}
""")

# $1 organization, $2 conversation, $3 most
WINDOW = f"""
SELECT w.* FROM agent.conversation_heads h
CROSS JOIN LATERAL ({_window("$1", "$2", "$3")}) w
WHERE h.organization_id = $1 AND h.conversation_id = $2
"""

# Facts, their messages and steps, under the fence: zero rows means that another owner has the run.
# pending_message_id: whose calls wait for the client; approval_due: when they are answered without one; traced_step_id:
# the step whose exchange with the provider is `trace`; estimated_tokens, reported_tokens: of the step's model call.
COMMIT = Statement(f"""
WITH run AS (
    UPDATE agent.runs
    SET facts = facts + :fact_count, usage = coalesce(:usage::jsonb, usage), first_token_at = coalesce(first_token_at, :first_token_at),
        status = coalesce(:status, status), stop_reason = :stop_reason, error = :error::jsonb,
        completed_at = CASE WHEN :status::text IS NULL THEN NULL ELSE clock_timestamp() END
    WHERE organization_id = :organization_id AND id = :run_id AND fence = :fence AND status = 'running'
        -- So that the same commit changes nothing when it comes again.
        AND facts = :facts_before
    RETURNING cancel_requested, facts - :fact_count AS before, started_at, completed_at
), head AS (
    UPDATE agent.conversation_heads h
    SET next_seq = h.next_seq + :message_count,
        prompt_versions = coalesce(:prompt_versions::jsonb, h.prompt_versions),
        prompt_hash = CASE WHEN :prompt_versions::jsonb IS NULL THEN h.prompt_hash ELSE :prompt_hash END,
        active_run_id = CASE WHEN :status::text IS NOT NULL AND h.waiting = 0 THEN NULL ELSE h.active_run_id END,
        pending_message_id = CASE WHEN :status::text IS NULL THEN h.pending_message_id ELSE :pending_message_id END,
        approval_due = CASE WHEN :status::text IS NULL THEN h.approval_due ELSE :approval_due END,
        estimated_tokens = CASE WHEN :reported_tokens > 0 THEN :estimated_tokens ELSE h.estimated_tokens END,
        reported_tokens = CASE WHEN :reported_tokens > 0 THEN :reported_tokens ELSE h.reported_tokens END
    FROM run WHERE h.organization_id = :organization_id AND h.conversation_id = :conversation_id
    RETURNING h.log_id, h.next_seq - :message_count AS first_seq, h.waiting
), stored AS (
    INSERT INTO agent.facts (organization_id, run_id, number, kind, schema_version, fence, sequence, body)
    SELECT :organization_id, :run_id, run.before + f.place, f.kind, f.schema_version, :fence, f.sequence, f.body
    FROM run, jsonb_to_recordset(:facts::jsonb) AS f(place int, kind text, schema_version int, sequence bigint, body jsonb)
), said AS (
    {INSERT_MESSAGES}
    SELECT :organization_id, head.log_id, head.first_seq + m.place, m.id, :agent_id, :conversation_id, :run_id, m.step_id, run.before + m.fact, {MESSAGE_VALUES}
    FROM run, head, {messages_in(":messages")}
), prompt AS (
    INSERT INTO agent.compiled_prompts (organization_id, agent_id, hash, text)
    SELECT :organization_id, :agent_id, :prompt_hash, :prompt_text FROM run WHERE :prompt_text::text IS NOT NULL ON CONFLICT DO NOTHING
), traced AS (
    INSERT INTO agent.provider_traces (organization_id, step_id, run_id, agent_id, trace)
    SELECT :organization_id, :traced_step_id, :run_id, :agent_id, :trace FROM run WHERE :trace::text IS NOT NULL
    ON CONFLICT (organization_id, step_id) DO UPDATE SET trace = excluded.trace
), step AS (
    INSERT INTO agent.steps (organization_id, id, run_id, agent_id, number, status, stop_reason, model_handle, attempts,
                             context_window_limit, usage, error, prompt_hash, block_versions, trace_id, metrics,
                             created_at, completed_at)
    SELECT :organization_id, s.id, :run_id, :agent_id, s.number, s.status, s.stop_reason, s.model_handle, s.attempts, s.context_window_limit,
           s.usage, s.error, decode(s.prompt_hash, 'hex'), s.block_versions, s.trace_id, s.metrics, clock_timestamp(),
           CASE WHEN s.status = 'pending' THEN NULL ELSE clock_timestamp() END
    FROM run, jsonb_to_recordset(:steps::jsonb) AS s(
        id uuid, number int, status text, stop_reason text, model_handle text, attempts int, context_window_limit int,
        usage jsonb, error jsonb, prompt_hash text, block_versions jsonb, trace_id text, metrics jsonb)
    ON CONFLICT (organization_id, id) DO UPDATE
    SET status = excluded.status, stop_reason = excluded.stop_reason, error = excluded.error,
        metrics = steps.metrics || excluded.metrics, completed_at = excluded.completed_at
)
SELECT run.cancel_requested, run.started_at, run.completed_at, head.waiting FROM run LEFT JOIN head ON true
""")

# What became of a commit whose answer was lost: `facts` says how far the run is. $1 organization, $2 run
COMMITTED = """
SELECT r.fence, r.facts, r.status, r.cancel_requested, r.started_at, r.completed_at, h.waiting
FROM agent.runs r
JOIN agent.conversation_heads h ON h.organization_id = r.organization_id AND h.conversation_id = r.conversation_id
WHERE r.organization_id = $1 AND r.id = $2
"""

# What waits for the client is given up: the message with the returns, as a part of the run that made the calls; that run
# and those that answered in part (declined_ids) count as cancelled, whatever their facts say.
DECLINE = Statement(f"""
WITH head AS (
    UPDATE agent.conversation_heads SET next_seq = next_seq + 1, pending_message_id = NULL, approval_due = NULL
    WHERE organization_id = :organization_id AND conversation_id = :conversation_id
    RETURNING log_id, next_seq - 1 AS seq
), ended AS (
    UPDATE agent.runs SET status = 'cancelled', stop_reason = 'cancelled'
    WHERE organization_id = :organization_id AND id = ANY(:declined_ids::uuid[])
        AND conversation_id = :conversation_id AND stop_reason = 'requires_approval'
)
{INSERT_MESSAGES}
SELECT :organization_id, head.log_id, head.seq, m.id, c.agent_id, :conversation_id, :run_id, m.step_id,
       (SELECT facts FROM agent.runs WHERE organization_id = :organization_id AND id = :run_id), {MESSAGE_VALUES}
FROM head
JOIN agent.conversations c ON c.organization_id = :organization_id AND c.id = :conversation_id, {messages_in(":messages")}
""")

# What was said elsewhere, without a run. $1 organization, $2 log, $3 seq of the first, $4 agent, $5 conversation,
# $6 messages
IMPORT_MESSAGES = f"""
{INSERT_MESSAGES}
SELECT $1, $2, $3::bigint + m.place, m.id, $4, $5, NULL, NULL, NULL, {MESSAGE_VALUES} FROM {messages_in("$6")}
"""

# Calls that waited at an earlier place, which the conversation was made to end at. $1 organization, $2 conversation,
# $3 message
WAIT = """
UPDATE agent.conversation_heads SET pending_message_id = $3 WHERE organization_id = $1 AND conversation_id = $2
"""
# Whether a run has answered the calls of a step, in whatever conversation. $1 organization, $2 step
HAS_RETURNED = """
SELECT EXISTS (
    SELECT FROM agent.messages
    WHERE organization_id = $1 AND step_id = $2 AND role = 'tool' AND run_id IS NOT NULL)
"""

# The newest messages of a conversation's own log, whatever its window shows, newest first. $1 organization,
# $2 conversation, $3 most
LOG_TAIL = f"""
SELECT {_WINDOW_COLUMNS} FROM agent.conversation_heads h
JOIN agent.messages m ON m.organization_id = $1 AND m.log_id = h.log_id
WHERE h.organization_id = $1 AND h.conversation_id = $2 AND m.role <> 'summary'
ORDER BY m.seq DESC LIMIT $3
"""

# Calls that wait for the client, by the run that made them. $1 organization, $2 agent, $3 conversation or null
PENDING_RUNS = """
SELECT m.run_id, c.id AS conversation_id
FROM agent.conversations c
JOIN agent.conversation_heads h ON h.organization_id = $1 AND h.conversation_id = c.id
JOIN agent.messages m ON m.organization_id = $1 AND m.id = h.pending_message_id
JOIN agent.runs r ON r.organization_id = $1 AND r.id = m.run_id
WHERE c.organization_id = $1 AND c.agent_id = $2 AND ($3::uuid IS NULL OR c.id = $3) AND h.active_run_id IS NULL
"""

# Answers in line, and those of the run whose turn has come and that has not taken them yet.
# $1 organization, $2 conversation
ANSWERS_IN_LINE = """
SELECT run_id, schema_version, input FROM agent.conversation_line
WHERE organization_id = $1 AND conversation_id = $2 AND front ORDER BY entered_at
"""

# The window begins at a message, and a summary stands for what was before; the prompt is compiled anew.
# $1 organization, $2 conversation, $3 first message that is kept, $4 summary
MOVE_WINDOW = """
UPDATE agent.conversation_heads h
SET window_ordinal = s.ordinal, window_seq = m.seq, summary_id = $4, prompt_hash = NULL, prompt_versions = NULL
FROM agent.messages m
JOIN agent.conversation_segments s ON s.organization_id = $1 AND s.conversation_id = $2 AND s.log_id = m.log_id
    AND m.seq >= s.from_seq AND m.seq <= coalesce(s.to_seq, 9223372036854775807)
WHERE h.organization_id = $1 AND h.conversation_id = $2 AND m.organization_id = $1 AND m.id = $3
"""

# What a model's window turned out to be; it only shrinks, until it is forgotten after a week: its provider may have
# changed it. $1 organization, $2 model, $3 tokens
LEARN_WINDOW = """
INSERT INTO agent.learned_windows (organization_id, model, tokens) VALUES ($1, $2, $3)
ON CONFLICT (organization_id, model) DO UPDATE SET tokens = excluded.tokens, learned_at = clock_timestamp()
WHERE learned_windows.tokens > excluded.tokens OR learned_windows.learned_at < now() - interval '7 days'
"""

# The next in line gets the turn: its home drives it if it is alive, anyone otherwise, and anyone drives what is in the
# background. While calls wait for the client, what is said in the background waits, too: nobody is there to be refused.
# Its time limit is counted from now. $1 organization, $2 conversation
PROMOTE = f"""
WITH next AS (
    SELECT l.run_id, r.home_id,
           NOT r.background AND EXISTS (
               SELECT FROM agent.workers w WHERE w.id = r.home_id AND w.beat_at > clock_timestamp() - {LEASE}) AS alive
    FROM agent.conversation_line l
    JOIN agent.runs r ON r.organization_id = $1 AND r.id = l.run_id
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
SELECT run_id, CASE WHEN alive THEN home_id END AS home_id FROM next
"""

# A key is of one conversation; an id may be any run's. $1 organization, $2 keys, $3 run, $4 conversation
FIND_BY_KEYS = """
SELECT run_id, $4::uuid AS conversation_id FROM agent.run_keys WHERE organization_id = $1 AND key = ANY($2::text[])
UNION ALL SELECT id, conversation_id FROM agent.runs WHERE organization_id = $1 AND id = $3 LIMIT 1
"""

# Whoever attaches to a run that still waits becomes its home: its reader is here. $1 organization, $2 run, $3 worker
MOVE_HOME = """
UPDATE agent.runs SET home_id = $3 WHERE organization_id = $1 AND id = $2 AND status = 'created' AND home_id <> $3
"""

FIND_BY_HASH = """
SELECT id FROM agent.runs
WHERE organization_id = $1 AND request_hash = $2 AND created_at > now() - interval '10 minutes'
ORDER BY created_at DESC LIMIT 1
"""

RUN_COLUMNS = """organization_id, id, agent_id, conversation_id, user_id, status, fence, facts, cancel_requested, deadline,
    ancestors, ceiling, background, created_at"""

FACTS = """
SELECT number, kind, schema_version, sequence, body FROM agent.facts
WHERE organization_id = $1 AND run_id = $2 ORDER BY number
"""

# The system prompt that the first fact names. $1 organization, $2 agent, $3 its hash
SYSTEM_PROMPT = """
SELECT coalesce((
    SELECT text FROM agent.system_prompts WHERE organization_id = $1 AND agent_id = $2 AND hash = decode($3, 'hex')
), (SELECT system FROM agent.agents WHERE organization_id = $1 AND id = $2))
"""

RUN = """
SELECT id, agent_id, conversation_id, status, stop_reason, background, fence, facts, usage, error, created_at, started_at,
       first_token_at, completed_at
FROM agent.runs WHERE organization_id = $1 AND id = $2
"""

RUN_MESSAGES = """
SELECT id, role, content, name, otid, sender_id, run_id, step_id, fact, seq, created_at FROM agent.messages
WHERE organization_id = $1 AND run_id = $2 ORDER BY fact, seq
"""

# $1 organization, $2 conversation
HEAD = """
SELECT next_seq, prompt_versions, estimated_tokens, reported_tokens FROM agent.conversation_heads
WHERE organization_id = $1 AND conversation_id = $2
"""

# What its newest model call was told. $1 organization, $2 run
RUN_PROMPT = """
SELECT p.hash, p.text, s.block_versions FROM agent.steps s
JOIN agent.compiled_prompts p ON p.organization_id = $1 AND p.agent_id = s.agent_id AND p.hash = s.prompt_hash
WHERE s.organization_id = $1 AND s.run_id = $2 ORDER BY s.number DESC LIMIT 1
"""

# Workers -----------------------------------------------------------------------------------------------

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

# How often a run was claimed since it got anywhere: since its last fact, else since it was accepted.
_CLAIMS = """r.fence - coalesce((
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
RETURNING r.{RUN_COLUMNS.replace(", ", ", r.")}, {_CLAIMS}, taken.refused_by, r.deadline < clock_timestamp() AS overdue
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
WHERE q.refused_by <> '{}' AND r.organization_id = q.organization_id AND r.id = q.run_id AND r.deadline < clock_timestamp()
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
RETURNING {RUN_COLUMNS}, {_CLAIMS}, '{{}}'::uuid[] AS refused_by, deadline < clock_timestamp() AS overdue
"""

# A run goes from its owner under this fence to another. $1 organization, $2 run, $3 fence, $4 worker
ADOPT = f"""
UPDATE agent.runs r SET fence = fence + 1, worker_id = $4
WHERE organization_id = $1 AND id = $2 AND fence = $3 AND status = 'running'
RETURNING {RUN_COLUMNS}, {_CLAIMS}, '{{}}'::uuid[] AS refused_by, deadline < clock_timestamp() AS overdue
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

# A background run whose turn had come waits in line again, since calls wait for the client. $1 organization,
# $2 conversation, $3 run, $4 fence, $5 the message with the calls
WAIT_IN_LINE = """
WITH run AS (
    UPDATE agent.runs SET status = 'created', worker_id = NULL, started_at = NULL
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

# Whether a run, or a rewind, that has the turn goes on. $1 organization, $2 its id
GOES_ON = "SELECT EXISTS (SELECT FROM agent.turn_holders WHERE organization_id = $1 AND id = $2)"

# The request that has the conversation for itself, or waits to. $1 organization, $2 conversation, $3 its active run
LOCKING_RUN = """
SELECT r.id FROM agent.runs r
WHERE r.organization_id = $1 AND (r.options ->> 'locks')::boolean AND (r.id = $3 OR r.id IN (
    SELECT l.run_id FROM agent.conversation_line l WHERE l.organization_id = $1 AND l.conversation_id = $2))
ORDER BY r.id <> $3, r.created_at LIMIT 1
"""

# Cancel ------------------------------------------------------------------------------------------------

# $1 organization, $2 runs
CANCEL_RUNNING = """
UPDATE agent.runs SET cancel_requested = true
WHERE organization_id = $1 AND id = ANY($2::uuid[]) AND status = 'running'
RETURNING id, worker_id
"""

# A run still in line leaves it. $4: its home, when its client is gone; what is in the background then stays.
# $1 organization, $2 conversation, $3 run
CANCEL_WAITING = """
WITH gone AS (
    DELETE FROM agent.conversation_line l USING agent.runs r
    WHERE l.organization_id = $1 AND l.conversation_id = $2 AND l.run_id = $3
        AND r.organization_id = $1 AND r.id = $3 AND r.status = 'created'
        AND ($4::uuid IS NULL OR r.home_id = $4 AND NOT r.background)
    RETURNING l.run_id
), head AS (
    UPDATE agent.conversation_heads SET waiting = waiting - 1
    WHERE organization_id = $1 AND conversation_id = $2 AND EXISTS (SELECT FROM gone)
)
UPDATE agent.runs SET status = 'cancelled', stop_reason = 'cancelled', completed_at = clock_timestamp()
WHERE organization_id = $1 AND id = (SELECT run_id FROM gone)
RETURNING id
"""

# A request that was withdrawn was never made: its retry is a first attempt. $1 organization, $2 run
FORGET_REQUEST = """
WITH keys AS (DELETE FROM agent.run_keys WHERE organization_id = $1 AND run_id = $2)
UPDATE agent.runs SET request_hash = NULL WHERE organization_id = $1 AND id = $2
"""
