"""Messages of the old server's database, by agents and by conversations, in order."""

from collections.abc import AsyncIterator, Sequence

from cli.importing.schema import CONVERSATION_MESSAGES, CONVERSATIONS, MESSAGES
from cli.importing.source import Source, complete
from cli.importing.values import Row


class MessageSource:
    """The messages of an open snapshot."""

    def __init__(self, source: Source) -> None:
        self._source = source

    async def approval_answers(self, agent_id: str) -> list[Row]:
        """Returns the `approvals` of an agent's messages that answer calls which waited."""
        if not self._source.has(MESSAGES.name, "approvals"):
            return []
        query = "SELECT approvals FROM messages WHERE agent_id = $1 AND role = 'approval' AND approvals IS NOT NULL"
        return [dict(row) for row in await self._source.all(query, agent_id)]

    async def older_messages(self, agent_id: str, window: Sequence[str]) -> AsyncIterator[Row]:
        """Yields the messages of the default conversation outside of its window, oldest first."""
        in_default = "m.conversation_id IS NULL" if self._source.has(MESSAGES.name, "conversation_id") else "true"
        query = (
            f"SELECT {self._source.selected(MESSAGES, 'm')}, NULL AS keeper FROM messages m WHERE m.agent_id = $1"
            f" AND {in_default} AND {self._source.not_deleted(MESSAGES.name, 'm')} AND NOT m.id = ANY($2::text[])"
            f" ORDER BY {self._sequence()}"
        )
        async for row in self._source.read(query, agent_id, list(window)):
            yield complete(MESSAGES, row)

    async def window_messages(self, agent_id: str, window: Sequence[str]) -> AsyncIterator[Row]:
        """Yields the messages with these ids, in their order; `keeper`: the conversation in which each keeps its id."""
        query = (
            f"SELECT {self._source.selected(MESSAGES, 'm')}, {self._keeper()} AS keeper FROM messages m"
            f" WHERE m.agent_id = $1 AND {self._source.not_deleted(MESSAGES.name, 'm')} AND m.id = ANY($2::text[])"
            " ORDER BY array_position($2::text[], m.id::text)"
        )
        async for row in self._source.read(query, agent_id, list(window)):
            yield complete(MESSAGES, row)

    async def first_message(self, conversation_id: str) -> Row | None:
        """Returns the first message of a conversation's window."""
        if not self._source.has(CONVERSATION_MESSAGES.name, "message_id"):
            return None
        query = (
            f"SELECT {self._source.selected(MESSAGES, 'm')} FROM conversation_messages cm"
            " JOIN messages m ON m.id = cm.message_id WHERE cm.conversation_id = $1 AND cm.in_context"
            f" AND {self._source.not_deleted(CONVERSATION_MESSAGES.name, 'cm')}"
            f" AND {self._source.not_deleted(MESSAGES.name, 'm')} ORDER BY cm.position LIMIT 1"
        )
        records = await self._source.all(query, conversation_id)
        return complete(MESSAGES, records[0]) if records else None

    async def conversation_messages(self, conversation_id: str) -> AsyncIterator[Row]:
        """Yields the messages of a conversation: those not `in_context` by age, then the others by their place."""
        if not self._source.has(CONVERSATION_MESSAGES.name, "message_id"):
            return
        order = "cm.in_context, CASE WHEN cm.in_context THEN cm.position END"
        query = (
            f"SELECT {self._source.selected(MESSAGES, 'm')}, {self._keeper()} AS keeper, cm.in_context,"
            " cm.id AS listing"
            " FROM conversation_messages cm JOIN messages m ON m.id = cm.message_id"
            f" WHERE cm.conversation_id = $1 AND {self._source.not_deleted(CONVERSATION_MESSAGES.name, 'cm')}"
            f" AND {self._source.not_deleted(MESSAGES.name, 'm')} ORDER BY {order}, {self._sequence()}"
        )
        async for row in self._source.read(query, conversation_id):
            yield complete(MESSAGES, row)

    def _keeper(self) -> str:
        """SQL: of the conversations that list a message `m`, the one it was written in, else the first; null: the
        default one."""
        has = self._source.has
        if not (has(MESSAGES.name, "conversation_id") and has(CONVERSATION_MESSAGES.name, "message_id")):
            return "NULL"
        home = self._lists("cm.conversation_id = m.conversation_id")
        first = self._lists("cm.conversation_id IS NOT NULL", "min(cm.conversation_id)")
        return (
            f"CASE WHEN m.conversation_id IS NULL THEN NULL WHEN EXISTS ({home}) THEN m.conversation_id"
            f" ELSE ({first}) END"
        )

    def _lists(self, condition: str, columns: str = "") -> str:
        return (
            f"SELECT {columns} FROM conversation_messages cm JOIN conversations c ON c.id = cm.conversation_id"
            f" WHERE cm.message_id = m.id AND {condition}"
            f" AND {self._source.not_deleted(CONVERSATION_MESSAGES.name, 'cm')}"
            f" AND {self._source.not_deleted(CONVERSATIONS.name, 'c')}"
        )

    def _sequence(self) -> str:
        return "m.sequence_id" if self._source.has(MESSAGES.name, "sequence_id") else "m.created_at, m.id"
