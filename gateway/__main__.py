"""`python -m gateway`: REST and SSE on LOCI_HOST:LOCI_PORT."""

import logging

from gateway.bootstrap import build
from gateway.server.http_server import HttpServer
from gateway.settings import settings_from
from services.common import telemetry
from services.common.keys import signer_from, verifier_from
from services.common.server import serve_until_signal
from services.common.settings import Env, run_service

logger = logging.getLogger("gateway")


async def main(env: Env) -> None:
    """Serves until SIGTERM or SIGINT."""
    settings = settings_from(env)
    telemetry.setup("gateway", env)
    gateway = build(settings, signer_from(env), verifier=verifier_from(env))
    server = HttpServer(
        gateway.app,
        settings.host,
        settings.port,
        listen_fd=settings.listen_fd,
        max_body_bytes=settings.max_body_bytes,
    )
    logger.info("serving", extra={"address": f"http://{server.host}:{server.port}"})
    await serve_until_signal((), background=(server.serve,), on_drain=(server.stop,), on_stop=(gateway.close,))


if __name__ == "__main__":
    run_service(main)
