"""The tool runner on a real Postgres behind real gRPC, with a sandbox that the test holds in its hand."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

import grpc
import pytest

from loci.tool.v1 import execution_service_pb2 as execution_pb
from loci.tool.v1 import tool_pb2
from loci.tool.v1 import tool_service_pb2 as tool_pb
from loci.tool.v1.execution_service_pb2_grpc import ExecutionServiceStub
from loci.tool.v1.mcp_service_pb2_grpc import McpServiceStub
from loci.tool.v1.sandbox_config_service_pb2_grpc import SandboxConfigServiceStub
from loci.tool.v1.tool_service_pb2_grpc import ToolServiceStub
from services.common.channel import make_channel
from services.common.context import CallContext, Signer, Verifier, use_context
from services.common.database import open_pool
from services.common.encryption import Sealer
from services.common.errors import LociError, from_rpc
from services.common.keys import key_id, load_private_key, new_private_key
from services.common.statement_counter import StatementCounter
from services.tool_runner.bootstrap import MakeRunners, ToolRunner, build, build_mcp, postgres_stores
from services.tool_runner.builtin.runner import BuiltinRunner
from services.tool_runner.core.job import ExitReason, Job, Limits, Output, Result, SandboxUnavailable
from services.tool_runner.core.model import ToolType
from services.tool_runner.core.ports import NO_ENDS, Ends, Process, Runner, Sandbox
from services.tool_runner.egress.egress import Egress, EgressSettings
from services.tool_runner.layers.install_job import LayerSettings
from services.tool_runner.layers.layers import Layers
from services.tool_runner.mcp.stdio import SandboxPrograms
from services.tool_runner.mcp_servers.wiring import McpSettings
from services.tool_runner.web.lazy import Web
from services.tool_runner.web.rules import SearchSettings
from tests.polling import until

if TYPE_CHECKING:
    from loci.tool.v1.execution_service_pb2_grpc import ExecutionServiceAsyncStub
    from loci.tool.v1.mcp_service_pb2_grpc import McpServiceAsyncStub
    from loci.tool.v1.sandbox_config_service_pb2_grpc import SandboxConfigServiceAsyncStub
    from loci.tool.v1.tool_pb2 import Tool
    from loci.tool.v1.tool_service_pb2_grpc import ToolServiceAsyncStub
    from services.tool_runner.tools.search.ports import Embedder

PRIVATE_KEY = new_private_key()
_KEY = load_private_key(PRIVATE_KEY)
SIGNER = Signer(_KEY, key_id(_KEY.public_key()))
VERIFIER = Verifier({key_id(_KEY.public_key()): _KEY.public_key()})

ROLL = '''
import random

def roll_dice(num_sides: int = 6) -> int:
    """Roll a die.

    Args:
        num_sides: how many sides it has
    """
    return random.randint(1, num_sides)
'''

_numbers = itertools.count()
ENCRYPTION_KEY = bytes(range(32))
SEALER = Sealer([ENCRYPTION_KEY])


@dataclass
class HeldSandbox:
    """Runs nothing: answers `result`, at once or when `gate` opens. `jobs` are those that it was given.

    `prints` is printed when a job comes; `on_output` is that of the last.
    """

    name: str = "held"
    image: str = "held:1"
    result: Result = field(default_factory=lambda: Result(reason=ExitReason.OK, result="7"))
    jobs: list[Job] = field(default_factory=list)
    killed: int = 0
    unavailable: str = ""
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    prints: list[tuple[str, str]] = field(default_factory=list)
    on_output: Callable[[Output], None] | None = None

    async def run(self, job: Job, ends: Ends = NO_ENDS) -> Result:
        if self.unavailable:
            raise SandboxUnavailable(self.unavailable)
        self.on_output = ends.on_output
        self.jobs.append(job)
        for stream, text in self.prints:
            self.print(stream, text)
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            self.killed += 1
            raise
        return self.result

    def print(self, stream: Any, text: str) -> None:
        """Prints as the running job."""
        assert self.on_output
        self.on_output(Output(0, stream, text))

    async def open(self, job: Job, ends: Ends = NO_ENDS) -> Process:
        raise AssertionError("no test opens a process here")

    async def end_session(self, session: str) -> None:
        """Nothing is kept."""

    async def close(self) -> None:
        """Nothing to close."""


@dataclass
class OneSandbox:
    """`execution.Sandboxes` with no choice."""

    sandbox: Sandbox

    async def get(self) -> Sandbox:
        return self.sandbox

    def forget(self, sandbox: Sandbox) -> None:
        """There is no other."""

    async def close(self) -> None:
        await self.sandbox.close()


@dataclass
class Client:
    """Stubs of a running tool runner. Calls are made within `client.of(organization)`."""

    tools: ToolServiceAsyncStub
    execution: ExecutionServiceAsyncStub
    sandbox_configs: SandboxConfigServiceAsyncStub
    mcp: McpServiceAsyncStub
    caller: CallContext

    @contextmanager
    def of(self, organization_id: UUID) -> Iterator[None]:
        """Calls in this block are made for another tenant."""
        with use_context(replace(self.caller, organization_id=organization_id), signer=SIGNER):
            yield

    async def upsert(self, source: str = ROLL, **fields: Any) -> Tool:
        request = tool_pb.UpsertToolRequest(tool=tool_pb2.Tool(source_code=source, **fields))
        return (await self.tools.UpsertTool(request)).tool

    async def call(
        self, tool_id: str, *, key: str = "", of_agent: Sequence[str] = (), **arguments: Any
    ) -> execution_pb.Receipt:
        """One call; the key is fresh unless given. `of_agent`: the agent's tools."""
        request = execution_pb.ExecuteToolRequest(
            call_key=key or f"call-{uuid4()}",
            tool_id=tool_id,
            arguments_json=json.dumps(arguments),
            agent_tool_ids=of_agent,
        )
        return (await self.execution.ExecuteTool(request)).receipt

    async def cancel(self, key: str) -> execution_pb.Receipt:
        request = execution_pb.CancelExecutionRequest(call_key=key)
        return (await self.execution.CancelExecution(request)).receipt

    async def receipt(self, key: str) -> execution_pb.Receipt:
        return (await self.execution.GetReceipt(execution_pb.GetReceiptRequest(call_key=key))).receipt


@dataclass
class Service(Client):
    """A tool runner in this process."""

    sandbox: Any
    runner: ToolRunner
    counter: StatementCounter

    async def until_running(self, count: int = 1) -> None:
        """The sandbox was given this many jobs."""
        await until(lambda: len(self.sandbox.jobs) >= count, pause=0.01)

    async def until_state(self, key: str, state: int) -> execution_pb.Receipt:
        """Returns the receipt of a call once it is in this state."""
        async with asyncio.timeout(20):
            while (receipt := await self._receipt_if_any(key)) is None or receipt.state != state:
                await asyncio.sleep(0.02)
        return receipt

    async def _receipt_if_any(self, key: str) -> execution_pb.Receipt | None:
        try:
            return await self.receipt(key)
        except grpc.aio.AioRpcError as error:
            if error.code() is not grpc.StatusCode.NOT_FOUND:
                raise
            return None


@contextmanager
def fails(kind: type[LociError], reason: str) -> Iterator[list[LociError]]:
    """The RPC within fails with this class and reason."""
    caught: list[LociError] = []
    with pytest.raises(grpc.aio.AioRpcError) as error:
        yield caught
    caught.append(from_rpc(error.value))
    assert type(caught[0]) is kind, caught[0]
    assert caught[0].reason == reason


@asynccontextmanager
async def client(address: str, organization_id: UUID | None = None) -> AsyncIterator[Client]:
    """A client of the service at `address`, for a tenant of its own."""
    caller = CallContext(organization_id or uuid4(), UUID(int=2), "user", ("tool_runner",))
    async with make_channel(address) as channel:
        with use_context(caller, signer=SIGNER):
            yield Client(
                ToolServiceStub(channel),
                ExecutionServiceStub(channel),
                SandboxConfigServiceStub(channel),
                McpServiceStub(channel),
                caller,
            )


@asynccontextmanager
async def tool_runner(
    url: str,
    folder: Path,
    *,
    sandbox: Sandbox | None = None,
    organization_id: UUID | None = None,
    limits: Limits | None = None,
    at_once: int = 8,
    runners: MakeRunners = lambda sandboxed: {},
    receipt_days: int = 0,
    sealer: Sealer | None = None,
    embedder: Embedder | None = None,
    mcp: McpSettings | None = None,
    layer_settings: LayerSettings | None = None,
    shows_secrets: bool = False,
) -> AsyncIterator[Service]:
    """A tool runner on a migrated database."""
    counter = StatementCounter(keep_texts=True)
    address = f"unix://{folder}/t{next(_numbers)}.sock"
    used = sandbox or HeldSandbox()
    async with await open_pool(url, counter=counter) as pool:
        egress = Egress(EgressSettings())
        layers = Layers(layer_settings or LayerSettings(folder / "layers"), OneSandbox(used), egress)
        stores = postgres_stores(pool, sealer or SEALER)
        programs = SandboxPrograms(OneSandbox(used), egress, layers, Limits())
        mcp_servers = build_mcp(mcp or McpSettings(), stores, programs)

        def all_runners(sandboxed: Runner) -> Mapping[ToolType, Runner]:
            web = Web(SearchSettings(), allow_private=False)
            builtin = BuiltinRunner(sandboxed, web, mcp_servers.resource_tools.by_name)
            return {ToolType.LETTA_BUILTIN: builtin, **runners(sandboxed)} if mcp else runners(sandboxed)

        runner = build(
            listen=address,
            verifier=VERIFIER,
            stores=stores,
            mcp=mcp_servers,
            sealer=sealer or SEALER,
            sandboxes=OneSandbox(used),
            embedder=embedder,
            limits=limits,
            at_once=at_once,
            runners=all_runners,
            receipt_days=receipt_days,
            shows_secrets=shows_secrets,
        )
        await runner.server.start()
        async with client(address, organization_id) as stubs:
            yield Service(
                stubs.tools, stubs.execution, stubs.sandbox_configs, stubs.mcp, stubs.caller, used, runner, counter
            )
        await runner.server.stop(0)
        await runner.executor.close()
        await mcp_servers.client.close()
        await layers.close()
        await runner.search.close()
