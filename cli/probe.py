"""`python -m cli.probe SECONDS http://... unix:///...`: end with 0 as soon as every address is healthy.

Otherwise one line on stderr and status 1. It is a process of its own because gRPC costs 30 MB.
"""

from __future__ import annotations

import asyncio
import sys
import time
import urllib.error
import urllib.request

import grpc
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse

PAUSE = 0.03  # seconds between two questions
CHECK = "/grpc.health.v1.Health/Check"


async def is_serving(address: str) -> bool:
    """Ask a gRPC server by grpc.health.v1, the gateway by its health route."""
    if address.startswith("http"):
        return await asyncio.to_thread(_answers, address)
    async with grpc.aio.insecure_channel(address) as channel:
        check = channel.unary_unary(
            CHECK,
            request_serializer=HealthCheckRequest.SerializeToString,
            response_deserializer=HealthCheckResponse.FromString,
        )
        try:
            reply = await check(HealthCheckRequest(), timeout=2)
        except grpc.aio.AioRpcError:
            return False
    return bool(reply.status == HealthCheckResponse.SERVING)


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2) as reply:  # noqa: S310 - our own URL
            return bool(reply.status == 200)
    except (urllib.error.URLError, OSError):
        return False


async def wait_until_serving(address: str, deadline: float) -> bool:
    """False when the deadline (monotonic seconds) comes first."""
    while time.monotonic() < deadline:
        if await is_serving(address):
            return True
        await asyncio.sleep(PAUSE)
    return False


async def main(seconds: float, addresses: list[str]) -> int:
    """The exit status."""
    deadline = time.monotonic() + seconds
    healthy = await asyncio.gather(*(wait_until_serving(address, deadline) for address in addresses))
    late = [address for address, well in zip(addresses, healthy, strict=True) if not well]
    if late:
        print(f"not healthy after {seconds:.0f} s: {', '.join(late)}", file=sys.stderr)
    return 1 if late else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main(float(sys.argv[1]), sys.argv[2:])))
