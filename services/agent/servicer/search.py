"""The search for messages; MessageService has it from here."""

from itertools import chain, islice
from typing import Any

from loci.agent.v1 import message_service_pb2 as wire
from services.agent.convert.search import hits_to_proto, message_query, search_target
from services.agent.recall.searching import Search
from services.common.context import current


class MessageSearchRpcs:
    """MessageService.SearchMessages."""

    def __init__(self, search: Search) -> None:
        self._search = search

    async def SearchMessages(self, request: wire.SearchMessagesRequest, context: Any) -> wire.SearchMessagesResponse:
        """Returns the best messages, `limit` at most as clients see them."""
        organization_id = current().organization_id
        agent_id, conversation_id = search_target(request)
        query = message_query(request)
        scope = await self._search.scope(organization_id, agent_id, conversation_id)
        found, silent = await self._search.find(scope, query)
        hits = chain.from_iterable(map(hits_to_proto, found))
        return wire.SearchMessagesResponse(hits=islice(hits, query.limit), without_vectors=silent)
