"""The system prompts of conversations: the text that the model was last given is stored, and is what clients see.

The head of a conversation names its prompt by hash, with the versions of what it was made from. A turn compiles it anew
when those have changed, and stores it with its first commit. Here it is compiled for those who look from outside.
"""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import asyncpg

from services.agent.core.ports import Memory, MemoryView
from services.agent.core.ports_journal import Prompt
from services.agent.core.prompt.system_prompt import compile_prompt, edited_since
from services.agent.resources.agents.model.settings import Agent, settings_of

# In the versions of a prompt that no step was given: nobody else names its text.
_UNSENT = "unsent"

# $1 organization, $2 conversation, $3 agent
_HEAD = """
SELECT h.prompt_versions, h.next_seq - 1 AS recalled, p.text
FROM agent.conversation_heads h
LEFT JOIN agent.compiled_prompts p ON p.organization_id = $1 AND p.agent_id = $3 AND p.hash = h.prompt_hash
WHERE h.organization_id = $1 AND h.conversation_id = $2
"""
# $4 hash, $5 text, $6 versions
_STORE = f"""
WITH old AS (
    SELECT prompt_hash, prompt_versions FROM agent.conversation_heads
    WHERE organization_id = $1 AND conversation_id = $2 FOR UPDATE
), gone AS (
    DELETE FROM agent.compiled_prompts p USING old
    WHERE p.organization_id = $1 AND p.agent_id = $3 AND p.hash = old.prompt_hash AND p.hash <> $4
        AND old.prompt_versions ? '{_UNSENT}'
), stored AS (
    INSERT INTO agent.compiled_prompts (organization_id, agent_id, hash, text) SELECT $1, $3, $4, $5 FROM old
    ON CONFLICT DO NOTHING
)
UPDATE agent.conversation_heads h SET prompt_hash = $4, prompt_versions = $6::jsonb FROM old
WHERE h.organization_id = $1 AND h.conversation_id = $2
"""


class PostgresPrompts:
    """`resources.messages.ports.Prompts`."""

    def __init__(self, pool: asyncpg.Pool, memory: Memory) -> None:
        self._pool = pool
        self._memory = memory

    async def stored(self, organization_id: UUID, agent: Agent, conversation_id: UUID) -> str:
        head = await self._pool.fetchrow(_HEAD, organization_id, conversation_id, agent.id)
        if head is None or head["text"] is None:
            return await self.rewrite(organization_id, agent, conversation_id)
        text: str = head["text"]
        # Edits of blocks are for the default conversation at once, for others when they are compiled next.
        if conversation_id != agent.id:
            return text
        view = await self._memory.view(agent.id, conversation_id)
        if not edited_since(head["prompt_versions"], view):
            return text
        return await self._store(organization_id, agent, conversation_id, _compile(agent, conversation_id, view, head))

    async def compiled(self, organization_id: UUID, agent: Agent, conversation_id: UUID) -> str:
        view = await self._memory.view(agent.id, conversation_id)
        head = await self._pool.fetchrow(_HEAD, organization_id, conversation_id, agent.id)
        last = None if head is None else head["prompt_versions"]
        return _compile(agent, conversation_id, view, head, last).text

    async def rewrite(self, organization_id: UUID, agent: Agent, conversation_id: UUID) -> str:
        view = await self._memory.view(agent.id, conversation_id)
        head = await self._pool.fetchrow(_HEAD, organization_id, conversation_id, agent.id)
        return await self._store(organization_id, agent, conversation_id, _compile(agent, conversation_id, view, head))

    async def _store(self, organization_id: UUID, agent: Agent, conversation_id: UUID, prompt: Prompt) -> str:
        versions = prompt.versions | {_UNSENT: True}
        await self._pool.execute(_STORE, organization_id, conversation_id, agent.id, prompt.hash, prompt.text, versions)
        return prompt.text


def _compile(agent: Agent, conversation_id: UUID, view: MemoryView, head: Any, last: Any = None) -> Prompt:
    """Returns the prompt of now; with the versions of the `last` one as a turn would compile it, to the byte."""
    return compile_prompt(
        settings_of(agent),
        view,
        agent_id=agent.id,
        conversation_id=conversation_id,
        recalled=0 if head is None else head["recalled"],
        now=datetime.now(UTC),
        last=last,
    )
