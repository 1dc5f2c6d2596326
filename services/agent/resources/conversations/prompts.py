"""Compiled prompts for those who look at a conversation from outside a turn."""

from datetime import UTC, datetime
from uuid import UUID

import asyncpg

from services.agent.core.ports import Memory
from services.agent.core.prompt.system_prompt import compile_prompt
from services.agent.resources.agents.model.settings import Agent, settings_of

# $1 organization, $2 conversation
_HEAD = """
SELECT prompt_versions, next_seq - 1 AS recalled FROM agent.conversation_heads
WHERE organization_id = $1 AND conversation_id = $2
"""


class PromptCompiler:
    """Compiles on demand; nothing is stored, the next turn compiles the same text."""

    def __init__(self, pool: asyncpg.Pool, memory: Memory) -> None:
        self._pool = pool
        self._memory = memory

    async def compiled_prompt(self, organization_id: UUID, agent: Agent, conversation_id: UUID) -> str:
        """See CompiledPrompts."""
        head = await self._pool.fetchrow(_HEAD, organization_id, conversation_id)
        prompt = compile_prompt(
            settings_of(agent),
            await self._memory.view(agent.id, conversation_id),
            agent_id=agent.id,
            conversation_id=conversation_id,
            recalled=0 if head is None else head["recalled"],
            now=datetime.now(UTC),
            last=None if head is None else head["prompt_versions"],
        )
        return prompt.text
