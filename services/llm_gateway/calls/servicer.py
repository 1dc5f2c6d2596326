"""loci.llm.v1.ChatService."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any
from uuid import UUID

from loci.llm.v1 import chat_service_pb2 as chat_pb
from loci.llm.v1 import chat_service_pb2_grpc as chat_grpc
from services.common.context import current, time_remaining
from services.llm_gateway.calls.convert import chat_request, event_message, generation_message, optional_id
from services.llm_gateway.calls.metering import Account
from services.llm_gateway.calls.service import Calls
from services.llm_gateway.core.chat import ChatRequest


def _account(request: chat_pb.GenerationRequest) -> Account:
    return Account(
        organization_id=current().organization_id,
        run_id=_run_id(request),
        step_id=optional_id("step", request.step_id),
        agent_id=optional_id("agent", request.agent_id),
    )


def _run_id(request: chat_pb.GenerationRequest) -> UUID | None:
    return optional_id("run", request.run_id) or current().run_id


def _request(request: chat_pb.GenerationRequest) -> ChatRequest:
    run_id = _run_id(request)
    return chat_request(request, "" if run_id is None else str(run_id))


class ChatServicer(chat_grpc.ChatServiceServicer):
    """loci.llm.v1.ChatService."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def Generate(self, request: chat_pb.GenerateRequest, context: Any) -> chat_pb.GenerateResponse:
        chat = _request(request.request)
        generation = await self._calls.generate(chat, _account(request.request), time_remaining())
        return chat_pb.GenerateResponse(generation=generation_message(generation))

    async def StreamGenerate(
        self, request: chat_pb.StreamGenerateRequest, context: Any
    ) -> AsyncGenerator[chat_pb.StreamGenerateResponse, None]:
        chat = _request(request.request)
        sequence = 0
        async with aclosing(self._calls.stream(chat, _account(request.request), time_remaining())) as events:
            async for event in events:
                sequence += 1
                yield event_message(event, sequence)

    async def PreviewGeneration(
        self, request: chat_pb.PreviewGenerationRequest, context: Any
    ) -> chat_pb.PreviewGenerationResponse:
        chat, account = _request(request.request), _account(request.request)
        body = await self._calls.preview(chat, account, stream=request.stream)
        return chat_pb.PreviewGenerationResponse(body_json=body.decode())

    async def CountTokens(self, request: chat_pb.CountTokensRequest, context: Any) -> chat_pb.CountTokensResponse:
        chat, account = _request(request.request), _account(request.request)
        counted = await self._calls.count_tokens(chat, account, time_remaining())
        return chat_pb.CountTokensResponse(
            tokens=counted.tokens, estimated=counted.estimated, relative_error=counted.relative_error
        )
