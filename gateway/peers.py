"""The services behind the gateway: one channel each for the life of the process, and how they are called."""

import asyncio
import random
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any, TypeVar

import grpc
from google.protobuf.message import Message
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from grpc_health.v1.health_pb2_grpc import HealthStub

from gateway.settings import Settings
from loci.agent.v1.access_service_pb2_grpc import AccessServiceStub
from loci.agent.v1.agent_service_pb2_grpc import AgentServiceStub
from loci.agent.v1.checkpoint_service_pb2_grpc import CheckpointServiceStub
from loci.agent.v1.conversation_service_pb2_grpc import ConversationServiceStub
from loci.agent.v1.device_service_pb2_grpc import DeviceServiceStub
from loci.agent.v1.group_service_pb2_grpc import GroupServiceStub
from loci.agent.v1.identity_service_pb2_grpc import IdentityServiceStub
from loci.agent.v1.learned_window_service_pb2_grpc import LearnedWindowServiceStub
from loci.agent.v1.message_service_pb2_grpc import MessageServiceStub
from loci.agent.v1.model_call_service_pb2_grpc import ModelCallServiceStub
from loci.agent.v1.run_service_pb2_grpc import RunServiceStub
from loci.agent.v1.schedule_service_pb2_grpc import ScheduleServiceStub
from loci.agent.v1.step_service_pb2_grpc import StepServiceStub
from loci.agent.v1.template_service_pb2_grpc import TemplateServiceStub
from loci.agent.v1.transfer_service_pb2_grpc import TransferServiceStub
from loci.llm.v1.chat_service_pb2_grpc import ChatServiceStub
from loci.llm.v1.forward_service_pb2_grpc import ForwardServiceStub
from loci.llm.v1.model_service_pb2_grpc import ModelServiceStub
from loci.llm.v1.provider_service_pb2_grpc import ProviderServiceStub
from loci.llm.v1.usage_service_pb2_grpc import UsageServiceStub
from loci.memory.v1.archive_service_pb2_grpc import ArchiveServiceStub
from loci.memory.v1.block_service_pb2_grpc import BlockServiceStub
from loci.memory.v1.folder_service_pb2_grpc import FolderServiceStub
from loci.memory.v1.passage_service_pb2_grpc import PassageServiceStub
from loci.tool.v1.execution_service_pb2_grpc import ExecutionServiceStub
from loci.tool.v1.mcp_service_pb2_grpc import McpServiceStub
from loci.tool.v1.sandbox_config_service_pb2_grpc import SandboxConfigServiceStub
from loci.tool.v1.tool_service_pb2_grpc import ToolServiceStub
from services.common.channel import make_channel
from services.common.errors import Cancelled, LociError, Unavailable, from_rpc
from services.common.server import READY

Request = TypeVar("Request", bound=Message)
Response = TypeVar("Response")

READY_SECONDS = 2.0
# What gRPC says by itself; a service that refuses gives a reason of its own.
_LOST = frozenset({"PEER_UNAVAILABLE", "CANCELLED"})


async def _asked(service: "tuple[str, Any]") -> tuple[str, bool]:
    name, health = service
    try:
        response = await health.Check(HealthCheckRequest(service=READY), timeout=READY_SECONDS)
    except grpc.RpcError:
        return name, False
    return name, response.status == HealthCheckResponse.SERVING


def stream(call: "grpc.aio.UnaryStreamCall[Any, Response]") -> "aclosing[AsyncGenerator[Response, None]]":
    """Returns the answers of a call, to be read within `async with`, which ends the call. Reading raises LociError."""
    return aclosing(_answers(call))


async def _answers(call: Any) -> AsyncGenerator[Any, None]:
    try:
        while (answer := await call.read()) is not grpc.aio.EOF:
            yield answer
    except grpc.RpcError as error:
        raise from_rpc(error) from None
    finally:
        call.cancel()


class Patience:
    """Waits between attempts, longer each time, until `window` seconds have passed since the first failure."""

    def __init__(self, window: float) -> None:
        self._window = window
        self.renew()

    def renew(self) -> None:
        """Notes that the peer was reached: the next failure is the first."""
        self._until: float | None = None
        self._pause = 0.05

    async def wait(self, failure: LociError) -> None:
        """Returns when it is time to try again. Raises `failure` when patience is at its end, or the peer not lost."""
        # CANCELLED comes from a server that shuts down; our own cancelling never gets here.
        if not isinstance(failure, Unavailable | Cancelled):
            raise failure
        now = time.monotonic()
        if self._until is None:
            self._until = now + self._window
        if now + self._pause >= self._until:
            raise failure
        # Not all at once: everybody who had called the lost peer waits here.
        await asyncio.sleep(self._pause * random.uniform(0.5, 1.0))
        self._pause = min(2 * self._pause, 1.0)


class Peers:
    """Stubs of every service. Made inside the event loop that uses them."""

    def __init__(self, settings: Settings, make: Callable[[str], grpc.aio.Channel] = make_channel) -> None:
        agent = make(settings.agent_address)
        memory = make(settings.memory_address)
        llm_gateway = make(settings.llm_gateway_address)
        tool_runner = make(settings.tool_runner_address)
        self._channels = (agent, memory, llm_gateway, tool_runner)
        self._timeout = settings.call_timeout
        self._health = {
            name: HealthStub(channel)
            for name, channel in zip(("agent", "memory", "llm_gateway", "tool_runner"), self._channels, strict=True)
        }
        self.access = AccessServiceStub(agent)
        self.agents = AgentServiceStub(agent)
        self.checkpoints = CheckpointServiceStub(agent)
        self.conversations = ConversationServiceStub(agent)
        self.devices = DeviceServiceStub(agent)
        self.groups = GroupServiceStub(agent)
        self.identities = IdentityServiceStub(agent)
        self.learned_windows = LearnedWindowServiceStub(agent)
        self.messages = MessageServiceStub(agent)
        self.model_calls = ModelCallServiceStub(agent)
        self.runs = RunServiceStub(agent)
        self.schedules = ScheduleServiceStub(agent)
        self.steps = StepServiceStub(agent)
        self.templates = TemplateServiceStub(agent)
        self.transfers = TransferServiceStub(agent)
        self.archives = ArchiveServiceStub(memory)
        self.blocks = BlockServiceStub(memory)
        self.passages = PassageServiceStub(memory)
        self.folders = FolderServiceStub(memory)
        self.chat = ChatServiceStub(llm_gateway)
        self.forwards = ForwardServiceStub(llm_gateway)
        self.models = ModelServiceStub(llm_gateway)
        self.providers = ProviderServiceStub(llm_gateway)
        self.usage = UsageServiceStub(llm_gateway)
        self.sandbox_configs = SandboxConfigServiceStub(tool_runner)
        self.executions = ExecutionServiceStub(tool_runner)
        self.mcp_servers = McpServiceStub(tool_runner)
        self.tools = ToolServiceStub(tool_runner)

    async def call(
        self,
        rpc: "grpc.aio.UnaryUnaryMultiCallable[Request, Response]",
        request: Request,
        *,
        timeout: float | None = None,
    ) -> Response:
        """Calls `rpc`, waiting at most `timeout` seconds for a peer that restarts. Raises LociError.

        Everything called this way may run twice: new things carry ids that the gateway mints.
        """
        timeout = timeout or self._timeout
        end, patience = time.monotonic() + timeout, Patience(timeout)
        while True:
            try:
                return await rpc(request, timeout=max(0.0, end - time.monotonic()), wait_for_ready=True)
            except grpc.RpcError as error:
                failure = from_rpc(error)
            if failure.reason == "DEADLINE_EXCEEDED":
                service = request.DESCRIPTOR.file.package.split(".")[1]
                sentence = f"the {service} service did not answer within {timeout:g} s; try again"
                raise Unavailable(sentence, reason="PEER_UNAVAILABLE")
            if failure.reason not in _LOST:
                raise failure
            await patience.wait(failure)

    async def silent(self) -> list[str]:
        """Returns the services that do not say within READY_SECONDS that they serve."""
        return [name for name, serves in await asyncio.gather(*map(_asked, self._health.items())) if not serves]

    async def close(self) -> None:
        """Closes the channels."""
        for channel in self._channels:
            await channel.close()
