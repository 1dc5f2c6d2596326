"""The services behind the gateway: one channel each for the life of the process, and how they are called."""

from collections.abc import Callable
from typing import TypeVar

import grpc

from gateway.settings import Settings
from loci.agent.v1.agent_service_pb2_grpc import AgentServiceStub
from loci.agent.v1.message_service_pb2_grpc import MessageServiceStub
from loci.agent.v1.run_service_pb2_grpc import RunServiceStub
from loci.llm.v1.model_service_pb2_grpc import ModelServiceStub
from loci.memory.v1.block_service_pb2_grpc import BlockServiceStub
from loci.memory.v1.passage_service_pb2_grpc import PassageServiceStub
from loci.tool.v1.tool_service_pb2_grpc import ToolServiceStub
from services.common.channel import call_idempotent, make_channel

Request = TypeVar("Request")
Response = TypeVar("Response")


class Peers:
    """Stubs of every service. Made inside the event loop that uses them."""

    def __init__(self, settings: Settings, make: Callable[[str], grpc.aio.Channel] = make_channel) -> None:
        agent = make(settings.agent_address)
        memory = make(settings.memory_address)
        llm_gateway = make(settings.llm_gateway_address)
        tool_runner = make(settings.tool_runner_address)
        self._channels = (agent, memory, llm_gateway, tool_runner)
        self._timeout = settings.call_timeout
        self.agents = AgentServiceStub(agent)
        self.messages = MessageServiceStub(agent)
        self.runs = RunServiceStub(agent)
        self.blocks = BlockServiceStub(memory)
        self.passages = PassageServiceStub(memory)
        self.models = ModelServiceStub(llm_gateway)
        self.tools = ToolServiceStub(tool_runner)

    async def call(
        self,
        rpc: "grpc.aio.UnaryUnaryMultiCallable[Request, Response]",
        request: Request,
        *,
        timeout: float | None = None,
    ) -> Response:
        """Calls `rpc`, waiting for a peer that restarts. Raises LociError.

        Everything called this way may run twice: new things carry ids that the gateway mints.
        """
        response: Response = await call_idempotent(rpc, request, timeout=timeout or self._timeout)
        return response

    async def close(self) -> None:
        """Closes the channels."""
        for channel in self._channels:
            await channel.close()
