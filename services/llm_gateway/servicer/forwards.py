"""loci.llm.v1.ForwardService."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from loci.llm.v1 import forward_service_pb2 as wire
from loci.llm.v1 import forward_service_pb2_grpc
from services.common.context import current, time_remaining
from services.llm_gateway.calling.accounts import Account
from services.llm_gateway.convert.forwards import forward_message, forward_of
from services.llm_gateway.convert.requests import optional_id
from services.llm_gateway.forwarding.forwards import Forwards


class ForwardServicer(forward_service_pb2_grpc.ForwardServiceServicer):
    """loci.llm.v1.ForwardService."""

    def __init__(self, forwards: Forwards) -> None:
        self._forwards = forwards

    async def Forward(self, request: wire.ForwardRequest, context: Any) -> AsyncGenerator[wire.ForwardResponse, None]:
        caller = current()
        account = Account(caller.organization_id, caller.run_id, agent_id=optional_id("agent", request.agent_id))
        async with aclosing(self._forwards.forward(forward_of(request), account, time_remaining())) as events:
            async for event in events:
                yield forward_message(event)
