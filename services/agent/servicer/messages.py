"""MessageService: turns, the list of messages, and the search for them."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import replace
from typing import Any
from uuid import UUID

import grpc

from loci.agent.v1 import message_service_pb2 as wire
from loci.agent.v1 import message_service_pb2_grpc
from services.agent.convert.options import check_round
from services.agent.convert.turns import compaction_request, event_to_proto, first_event, turn_request
from services.agent.core.events import Delta
from services.agent.core.ports_journal import TurnRequest
from services.agent.driving.worker import Worker
from services.agent.recall.searching import Search
from services.agent.resources.agents.ports import ModelCatalogue
from services.agent.resources.callbacks.address import check_callback
from services.agent.resources.groups.turns import GroupTurns
from services.agent.resources.messages.ports import History, MessageStore, Prompts
from services.agent.resources.messages.servicer import StoredMessageRpcs
from services.agent.servicer.search import MessageSearchRpcs
from services.agent.streams.reading import Reader
from services.common.context import current
from services.common.errors import Aborted, FailedPrecondition
from services.common.ids import from_public, to_public

# A request that still waits in line is withdrawn this long after its client is gone.
WITHDRAW_SECONDS = 10.0
_GROUP = "group-"
_NOT_SHORTER = "There is nothing to compact: a summary would not make the window shorter. Send more messages first."


class MessageServicer(StoredMessageRpcs, MessageSearchRpcs, message_service_pb2_grpc.MessageServiceServicer):
    """loci.agent.v1.MessageService; `longest_seconds` bounds every run.

    allow_private_urls: callbacks may go to addresses that are not public.
    """

    def __init__(
        self,
        history: History,
        stored: MessageStore,
        prompts: Prompts,
        models: ModelCatalogue,
        search: Search,
        worker: Worker,
        reader: Reader,
        groups: GroupTurns,
        *,
        longest_seconds: float,
        allow_private_urls: bool = False,
    ) -> None:
        StoredMessageRpcs.__init__(self, stored, history, prompts)
        MessageSearchRpcs.__init__(self, search)
        self._models = models
        self._worker = worker
        self._reader = reader
        self._groups = groups
        self._longest_seconds = longest_seconds
        self._allow_private_urls = allow_private_urls
        self._withdrawals: set[asyncio.Task[None]] = set()

    async def SendMessages(
        self, request: wire.SendMessagesRequest, context: grpc.aio.ServicerContext[Any, Any]
    ) -> wire.SendMessagesResponse:
        """Runs one turn and answers when it has ended."""
        response = wire.SendMessagesResponse()
        async with aclosing(self._turn(request.turn, stream_tokens=False)) as events:
            async for event in events:
                match event.WhichOneof("event"):
                    case "message":
                        response.messages.append(event.message)
                    case "end":
                        response.end.CopyFrom(event.end)
        return response

    async def StreamMessages(
        self, request: wire.StreamMessagesRequest, context: grpc.aio.ServicerContext[Any, Any]
    ) -> AsyncIterator[wire.StreamMessagesResponse]:
        """Runs one turn as a stream of events."""
        async with aclosing(self._turn(request.turn, stream_tokens=request.stream_tokens)) as events:
            async for event in events:
                yield wire.StreamMessagesResponse(event=event)

    async def StartMessages(
        self, request: wire.StartMessagesRequest, context: grpc.aio.ServicerContext[Any, Any]
    ) -> wire.StartMessagesResponse:
        """Runs one turn in the background."""
        turn = wire.TurnRequest()
        turn.CopyFrom(request.turn)
        turn.background = True
        accepted, _ = await self._worker.accept(await self._request(turn), stream=True)
        return wire.StartMessagesResponse(run_id=to_public("run", accepted.run_id), started=accepted.started)

    async def CompactConversation(
        self, request: wire.CompactConversationRequest, context: grpc.aio.ServicerContext[Any, Any]
    ) -> wire.CompactConversationResponse:
        """Runs a turn that compacts and says nothing. Raises FailedPrecondition (NOTHING_TO_COMPACT)."""
        response = wire.CompactConversationResponse()
        turn = compaction_request(request, current(), longest_seconds=self._longest_seconds)
        async with aclosing(self._events(turn, stream_tokens=False)) as events:
            async for event in events:
                match event.WhichOneof("event"):
                    case "notice" if event.notice.HasField("event_message"):
                        count = event.notice.event_message.messages_count
                        response.messages_count_before = response.messages_count_after = count
                    case "message" if event.message.HasField("summary_message"):
                        message = event.message.summary_message
                        response.summary = message.summary
                        response.messages_count_before = message.compaction_stats.messages_count_before
                        response.messages_count_after = message.compaction_stats.messages_count_after
                    case "end" if event.end.HasField("error"):
                        # It asks nobody for anything but a summary, so what failed is the run itself.
                        error = event.end.error
                        raise Aborted(
                            f"The window was not compacted: {error.message}", reason=error.reason or "INTERNAL"
                        )
                    case "end":
                        response.run.CopyFrom(event.end.run)
        if not response.summary:
            raise FailedPrecondition(_NOT_SHORTER, reason="NOTHING_TO_COMPACT")
        return response

    async def _turn(self, turn: wire.TurnRequest, *, stream_tokens: bool) -> AsyncGenerator[wire.TurnEvent]:
        async with aclosing(self._events(await self._request(turn), stream_tokens=stream_tokens)) as events:
            async for event in events:
                yield event

    async def _request(self, turn: wire.TurnRequest) -> TurnRequest:
        plan = None
        if turn.agent_id.startswith(_GROUP):
            opened = await self._groups.open(current(), from_public("group", turn.agent_id))
            sent, turn, plan = turn, wire.TurnRequest(), opened.plan
            turn.CopyFrom(sent)
            turn.agent_id = to_public("agent", opened.agent_id)
            if plan is not None:
                check_round(turn.options)
        request = turn_request(turn, current(), longest_seconds=self._longest_seconds)
        if plan is not None:
            request = replace(request, options=replace(request.options, group=plan))
        if request.options.callback_url is not None:
            await check_callback(request.options.callback_url, allow_private=self._allow_private_urls)
        if request.options.model is not None:
            window = await self._models.window(request.organization_id, request.options.model)
            request = replace(request, options=replace(request.options, context_window_limit=window))
        return request

    async def _events(self, request: TurnRequest, *, stream_tokens: bool) -> AsyncGenerator[wire.TurnEvent]:
        caller = current()
        accepted, subscription = await self._worker.accept(request, stream=stream_tokens)
        follow = self._reader.follow(caller.organization_id, accepted.run_id, subscription=subscription)
        begun = subscription is not None
        try:
            yield first_event(accepted.run_id, started=accepted.started)
            async with aclosing(follow) as events:
                async for event in events:
                    begun = True
                    if stream_tokens or not isinstance(event, Delta):
                        yield event_to_proto(event, accepted.run_id)
        finally:
            self._reader.leave(accepted.run_id, subscription)
            if not begun:
                self._withdraw_later(caller.organization_id, request.conversation_id, accepted.run_id)

    def _withdraw_later(self, organization_id: UUID, conversation_id: UUID, run_id: UUID) -> None:
        async def withdraw() -> None:
            await asyncio.sleep(WITHDRAW_SECONDS)
            await self._worker.withdraw(organization_id, conversation_id, run_id)

        task = asyncio.create_task(withdraw())
        self._withdrawals.add(task)
        task.add_done_callback(self._withdrawals.discard)
