"""The text that `loci run` prints when everything is up: its addresses and first commands to try."""

from __future__ import annotations

from cli.home import Home
from cli.settings import RunSettings
from services.llm_gateway.core.provider_types import TYPES

# Those that most people have.
_SUGGESTED = "OPENAI_API_KEY or ANTHROPIC_API_KEY"


def ready_text(settings: RunSettings, home: Home, grpc_port: int | None) -> str:
    """Returns several lines without a trailing newline."""
    host = "localhost" if settings.host in {"127.0.0.1", "0.0.0.0", "::", "::1"} else settings.host  # noqa: S104 - compared, not bound
    base = f"http://{host}:{settings.port}"
    return f"""\
Loci is ready at {base}
  gRPC   {_grpc(host, settings, grpc_port)}
  data   {home.root} (logs in {home.logs})
  model  {_model(settings)}

Try next, in another terminal:
  curl {base}/v1/health/
  {_chat(settings, base)}
or from Python (pip install letta-client):
  from letta_client import Letta
  client = Letta(base_url="{base}"{_sdk_key(settings)})
  agent = client.agents.create(memory_blocks=[{{"label": "human", "value": ""}}])
  reply = client.agents.messages.create(agent.id, input="My name is Ada.")
  print(reply.messages[-1].content, client.agents.blocks.retrieve("human", agent_id=agent.id).value)

Ctrl-C stops everything; what agents remember stays."""


def _grpc(host: str, settings: RunSettings, grpc_port: int | None) -> str:
    if grpc_port is None:
        return f"off: port {settings.grpc_port} is in use (set LOCI_GRPC_PORT to a free one)"
    return f"{host}:{grpc_port}"


def _model(settings: RunSettings) -> str:
    chosen = settings.environment.get("LOCI_DEFAULT_MODEL") or "loci/demo"
    names = _providers(settings)
    if names:
        return f"{chosen} by default; {' and '.join(names)} found"
    return f"{chosen} by default, a rule-based demo; set {_SUGGESTED} for a real one"


def _providers(settings: RunSettings) -> list[str]:
    """Returns the settings that configure providers, one of each type."""
    environment = settings.environment
    each = (next((name for name in row.present_by if environment.get(name)), "") for row in TYPES.values())
    return [name for name in (*each, "LOCI_PROVIDERS") if environment.get(name)]


def _chat(settings: RunSettings, base: str) -> str:
    port = "" if base == "http://localhost:8283" else f"LOCI_BASE_URL={base} "
    return f"{port}.venv/bin/loci chat"


def _sdk_key(settings: RunSettings) -> str:
    return ', api_key="<LETTA_SERVER_PASSWORD>"' if settings.environment.get("LETTA_SERVER_PASSWORD") else ""
