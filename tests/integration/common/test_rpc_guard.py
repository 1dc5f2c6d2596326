"""The guard that every test of services runs under sees what it is there for."""

from __future__ import annotations

import asyncio
from pathlib import Path

import asyncpg
import grpc
import pytest

from services.common.channel import make_channel
from services.common.database import open_pool
from tests.postgres import Postgres
from tests.rpc_guard import RpcGuard


async def test_a_peer_that_is_asked_within_a_transaction_is_noticed(
    postgres: Postgres, tmp_path: Path, rpc_guard: RpcGuard
) -> None:
    async with (
        await open_pool(postgres.superuser_url("postgres"), size=1) as pool,
        make_channel(f"unix://{tmp_path}/nobody") as channel,
    ):
        ask: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary("/loci.Peer/Ask")
        await _fails(ask)
        assert rpc_guard.asked == []
        async with pool.acquire() as connection:
            async with connection.transaction():
                await _fails(ask)
                await asyncio.gather(_fails(ask))
            assert rpc_guard.asked == ["loci.Peer/Ask"] * 2
            with pytest.raises(asyncpg.DivisionByZeroError):
                async with connection.transaction():
                    await connection.execute("SELECT 1 / 0")
            later = asyncio.create_task(_fails(ask))
            await later
        assert rpc_guard.asked == ["loci.Peer/Ask"] * 2
    rpc_guard.asked.clear()


async def _fails(ask: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes]) -> None:
    with pytest.raises(grpc.aio.AioRpcError):
        await ask(b"", timeout=5.0)
