"""Whether everything behind the gateway answers."""

from tests.integration.gateway.conftest import Edge, StartGateway
from tests.integration.gateway.scripted import Backend


async def test_who_does_not_answer_is_named(start_gateway: StartGateway, backend: Backend) -> None:
    edge: Edge = await start_gateway(password="secret")
    # A probe has no password.
    ready = await edge.http.get("/v1/ready/")
    assert (ready.status_code, ready.json()["status"]) == (200, "ok")
    await backend.stop("memory")
    missing = await edge.http.get("/v1/ready")
    assert (missing.status_code, missing.json()) == (503, {"detail": "not ready: memory"})
    assert (await edge.http.get("/v1/health")).status_code == 200
