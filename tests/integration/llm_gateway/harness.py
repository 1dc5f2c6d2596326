"""The llm gateway with its stubs, for a tenant of the test's own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import asyncpg
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from loci.llm.v1 import chat_pb2, chat_service_pb2, model_service_pb2
from loci.llm.v1.chat_service_pb2_grpc import ChatServiceStub
from loci.llm.v1.model_service_pb2_grpc import ModelServiceStub
from loci.llm.v1.provider_service_pb2_grpc import ProviderServiceStub
from loci.llm.v1.usage_service_pb2_grpc import UsageServiceStub
from services.common.channel import make_channel
from services.common.context import CallContext, Signer, Verifier, use_context
from services.common.database import StatementCounter, open_pool
from services.common.encryption import Sealer
from services.common.settings import Env
from services.llm_gateway.bootstrap import Built, build
from services.llm_gateway.providers.environment import read_providers
from services.llm_gateway.settings import CallSettings

KEY = Ed25519PrivateKey.generate()
SIGNER = Signer(KEY, "test")
VERIFIER = Verifier({"test": KEY.public_key()})
SEALER = Sealer([bytes(range(32))])
STEP, AGENT = f"step-{UUID(int=4)}", f"agent-{UUID(int=5)}"


@dataclass
class Gateway:
    """A running llm gateway and its stubs; calls are made as `caller`."""

    # The generated stubs' types are those of a channel that is not asyncio's.
    chat: Any
    models: Any
    spending: Any
    providers: Any
    pool: asyncpg.Pool
    built: Built
    address: str
    caller: CallContext

    async def generate(self, handle: str, text: str = "hello", **fields: Any) -> chat_pb2.Generation:
        """A blocking call with one user message."""
        asked = chat_service_pb2.GenerateRequest(request=generation(handle, text, **fields))
        made: chat_pb2.Generation = (await self.chat.Generate(asked)).generation
        return made

    def stream(self, handle: str, text: str = "hello", **fields: Any) -> Any:
        """A streaming call; the gRPC call object."""
        asked = chat_service_pb2.StreamGenerateRequest(request=generation(handle, text, **fields))
        return self.chat.StreamGenerate(asked)

    async def outcome(self, handle: str, *, stream: bool, **fields: Any) -> chat_pb2.Generation:
        """The reply of a call, streamed or not."""
        if not stream:
            return await self.generate(handle, **fields)
        *_, last = [event async for event in self.stream(handle, **fields)]
        made: chat_pb2.Generation = last.completed
        return made

    async def embed(self, handle: str, *texts: str) -> model_service_pb2.EmbedResponse:
        """Vectors."""
        response: model_service_pb2.EmbedResponse = await self.models.Embed(
            model_service_pb2.EmbedRequest(handle=handle, texts=texts)
        )
        return response

    async def usage(self) -> list[dict[str, Any]]:
        """This tenant's rows in order, once what waits is written."""
        await self.built.usage.flush()
        rows = await self.pool.fetch(
            "SELECT * FROM llm_gateway.usage WHERE organization_id = $1 ORDER BY id", self.caller.organization_id
        )
        return [dict(row) for row in rows]

    async def accounted(self, count: int = 1) -> list[dict[str, Any]]:
        """The same, once there are so many: whoever leaves a call does not wait for its account."""
        async with asyncio.timeout(20):
            while len(rows := await self.usage()) < count:
                await asyncio.sleep(0.01)
        return rows


def generation(handle: str, text: str = "hello", **fields: Any) -> chat_service_pb2.GenerationRequest:
    """A request with one user message."""
    message = chat_pb2.ChatMessage(
        role=chat_pb2.CHAT_ROLE_USER, parts=[chat_pb2.ChatPart(text=chat_pb2.TextPart(text=text))]
    )
    return chat_service_pb2.GenerationRequest(
        **{"handle": handle, "messages": [message], "step_id": STEP, "agent_id": AGENT, **fields}
    )


def call_context(organization_id: UUID) -> CallContext:
    """Returns the caller's context, unsigned."""
    return CallContext(organization_id, UUID(int=2), "run", ("llm_gateway",), run_id=UUID(int=3))


@asynccontextmanager
async def gateway_service(
    url: str,
    folder: Path,
    environment: Mapping[str, str],
    *,
    sealer: Sealer = SEALER,
    counter: StatementCounter | None = None,
    organization_id: UUID | None = None,
) -> AsyncIterator[Gateway]:
    """A gateway on a migrated database with the providers that `environment` configures, for a tenant of its own."""
    env = Env({"OPENAI_API_KEY": "sk-openai", "ANTHROPIC_API_KEY": "sk-ant", **environment})
    address = f"unix://{folder}/g.sock"
    async with await open_pool(url, size=2, counter=counter) as pool:
        built = build(
            listen=address,
            verifier=VERIFIER,
            pool=pool,
            sealer=sealer,
            configs=list(read_providers(env)),
            settings=CallSettings.read(env),
        )
        await built.server.start()
        try:
            caller = SIGNER.signed(call_context(organization_id or uuid4()))
            async with make_channel(address) as channel:
                with use_context(caller):
                    yield Gateway(
                        ChatServiceStub(channel),
                        ModelServiceStub(channel),
                        UsageServiceStub(channel),
                        ProviderServiceStub(channel),
                        pool,
                        built,
                        address,
                        caller,
                    )
        finally:
            await built.server.stop(0)
            await built.ledger.close()
            await built.providers.close()
            await built.forwards.close()
