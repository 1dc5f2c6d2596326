"""Calls whose requests are a stream, made to the end or to the peer's answer."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Any

import grpc

from services.common.errors import from_rpc


async def call_with_stream(call: Any, first: Iterable[Any], rest: AsyncIterator[Any]) -> Any:
    """Returns the response to `first` and then `rest`. Raises LociError. It is not repeated: what was read is gone."""
    try:
        try:
            for message in first:
                await call.write(message)
            async for message in rest:
                await call.write(message)
            await call.done_writing()
        except asyncio.InvalidStateError:
            pass  # it has been answered before its end
        return await call
    except grpc.RpcError as error:
        raise from_rpc(error) from None
    finally:
        call.cancel()
