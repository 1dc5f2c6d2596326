"""The gateway's routes and its OpenAPI document, without anything behind it."""

import asyncio
from functools import cache
from typing import Any

from fastapi import FastAPI

from gateway.bootstrap import build
from gateway.openapi.document import document
from gateway.settings import Settings
from services.common.context import Signer
from services.common.keys import load_private_key, new_private_key

_NOBODY = "unix:///nonexistent/loci.sock"


@cache
def application() -> FastAPI:
    """The gateway's application; none of its peers is there."""
    return asyncio.run(_built())


async def _built() -> FastAPI:
    settings = Settings(
        agent_address=_NOBODY, memory_address=_NOBODY, llm_gateway_address=_NOBODY, tool_runner_address=_NOBODY
    )
    gateway = build(settings, Signer(load_private_key(new_private_key()), "test"))
    await gateway.close()
    return gateway.fastapi


@cache
def openapi() -> dict[str, Any]:
    """The document."""
    return document(application())
