"""External callers and the settings of the service."""

import base64
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import orjson
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from services.agent.edge import DEFAULT_ORGANIZATION, Edge
from services.agent.resources.access import model
from services.agent.resources.access.model import hash_of
from services.agent.resources.access.store import PostgresCredentials
from services.agent.settings import Settings, is_private
from services.common.context import Signer, Verifier
from services.common.errors import PermissionDenied, ResourceExhausted, Unauthenticated
from services.common.guesses import MOST_A_MINUTE
from services.common.keys import key_id
from services.common.settings import Env, SettingsError

KEY = Ed25519PrivateKey.generate()
VERIFIER = Verifier({"test": KEY.public_key()})
METHOD = "loci.agent.v1.AgentService/GetAgent"
PEER = "ipv4:203.0.113.7:50000"
CALLER = model.Principal(organization_id=UUID(int=5), user_id=UUID(int=6), role="agent-only", id=UUID(int=7))


class Principal(PostgresCredentials):
    """One key, and no database."""

    def __init__(self) -> None:
        self.keys = {hash_of("loci-key-good"): CALLER}

    async def find(self, credential_hash: bytes) -> model.Principal | None:
        return self.keys.get(credential_hash)


def _edge(password: str, *, require_key: bool = False, known: model.Principal = CALLER) -> Edge:
    credentials = Principal()
    credentials.keys[hash_of("loci-key-good")] = known
    return Edge(password, Signer(KEY, "test"), credentials, require_key=require_key)


async def test_without_a_password_everybody_is_the_default_tenant() -> None:
    caller = await _edge("").authenticate([], METHOD, PEER)
    assert caller.organization_id == DEFAULT_ORGANIZATION == UUID("00000000-0000-4000-8000-000000000000")
    for audience in ("agent", "memory", "tool_runner", "llm_gateway"):
        assert VERIFIER.verify(caller.token, audience) == caller


@pytest.mark.parametrize("shown", ["Bearer sécret", "bearer sécret", b"Bearer s\xc3\xa9cret", "Bearer  sécret "])
async def test_with_the_password(shown: str | bytes) -> None:
    assert (await _edge("sécret").authenticate([("x", "y"), ("authorization", shown)], METHOD, PEER)).token


@pytest.mark.parametrize("shown", [None, "", "secret", "Bearer", "Bearer ", "Bearer secrets", "Basic secret", b"\xff"])
async def test_without_the_password(shown: str | bytes | None) -> None:
    with pytest.raises(Unauthenticated) as caught:
        await _edge("secret").authenticate([] if shown is None else [("authorization", shown)], METHOD, PEER)
    assert caught.value.reason == "PASSWORD_REQUIRED"
    assert "secret" not in caught.value.message.replace("LETTA_SERVER_PASSWORD", "")


@pytest.mark.parametrize(("password", "require_key"), [("", False), ("secret", False), ("", True)])
async def test_a_key_stands_for_its_tenant_and_role(password: str, require_key: bool) -> None:
    edge = _edge(password, require_key=require_key)
    caller = await edge.authenticate([("authorization", "Bearer loci-key-good")], METHOD, PEER)
    assert (caller.organization_id, caller.user_id, caller.role) == (UUID(int=5), UUID(int=6), "agent-only")
    assert VERIFIER.verify(caller.token, "memory") == caller
    with pytest.raises(Unauthenticated, match="not known"):
        await edge.authenticate([("authorization", "Bearer loci-key-bad")], METHOD, PEER)
    with pytest.raises(PermissionDenied, match="the role agent-only may not call"):
        await edge.authenticate(
            [("authorization", "Bearer loci-key-good")], "loci.agent.v1.AgentService/UpdateAgent", PEER
        )


async def test_where_keys_are_required_nobody_comes_in_without() -> None:
    for shown in ([], [("authorization", "Bearer secret")]):
        with pytest.raises(Unauthenticated) as caught:
            await _edge("secret", require_key=True).authenticate(shown, METHOD, PEER)
        assert caught.value.reason == "CREDENTIAL_INVALID"


async def test_a_key_limited_to_agents_is_for_rest() -> None:
    known = replace(CALLER, agent_ids=(UUID(int=8),))
    with pytest.raises(PermissionDenied, match="REST"):
        await _edge("", known=known).authenticate([("authorization", "Bearer loci-key-good")], METHOD, PEER)


@pytest.mark.parametrize(
    ("here", "also_here", "elsewhere"),
    [
        (PEER, "ipv4:203.0.113.7:50001", "ipv4:203.0.113.8:50000"),
        ("ipv6:%5B2001:db8:1:2::3%5D:50000", "ipv6:%5B2001:db8:1:2::4%5D:1", "ipv6:%5B2001:db8:1:3::3%5D:50000"),
        ("unix:", "unix:/run/agent.sock", PEER),
    ],
)
async def test_guesses_are_slowed_by_address(here: str, also_here: str, elsewhere: str) -> None:
    edge, known = _edge("secret"), [("authorization", "Bearer loci-key-good")]
    await edge.authenticate(known, METHOD, here)
    for number in range(MOST_A_MINUTE):
        guess = f"loci-key-{number}" if number % 2 else f"guess-{number}"
        with pytest.raises(Unauthenticated):
            await edge.authenticate([("authorization", f"Bearer {guess}")], METHOD, here)
    with pytest.raises(ResourceExhausted, match="wrong passwords") as refused:
        await edge.authenticate([("authorization", "Bearer secret")], METHOD, also_here)
    assert refused.value.reason == "GUESSES_RATE_LIMITED"
    await edge.authenticate(known, METHOD, also_here)
    await edge.authenticate([("authorization", "Bearer secret")], METHOD, elsewhere)


@pytest.mark.parametrize(
    ("listen", "private"),
    [
        ("unix:///run/x.sock", True),
        ("127.0.0.1:8284", True),
        ("[::1]:8284", True),
        ("localhost:8284", True),
        ("0.0.0.0:8284", False),
        ("[::]:8284", False),
        ("10.0.0.1:8284", False),
        ("agent:8284", False),
    ],
)
def test_who_can_reach_an_address(listen: str, private: bool) -> None:
    assert is_private(listen) is private


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """All that must be set."""
    path = tmp_path / "key"
    path.write_bytes(
        KEY.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    path.chmod(0o600)
    public = base64.b64encode(KEY.public_key().public_bytes_raw()).decode()
    return {
        "LOCI_LISTEN": "unix:///run/agent.sock",
        "LOCI_DATABASE_URL": "postgresql://all@/loci",
        "LOCI_MEMORY_ADDR": "unix:///run/memory.sock",
        "LOCI_LLM_GATEWAY_ADDR": "unix:///run/llm_gateway.sock",
        "LOCI_TOOL_RUNNER_ADDR": "unix:///run/tool_runner.sock",
        "LOCI_CONTEXT_SIGNING_KEY": str(path),
        "LOCI_CONTEXT_PUBLIC_KEYS": orjson.dumps({key_id(KEY.public_key()): public}).decode(),
    }


def test_defaults(environment: dict[str, str]) -> None:
    settings = Settings.read(Env(environment))
    assert (settings.database.url, settings.database.direct_url) == ("postgresql://all@/loci",) * 2
    assert (settings.defaults.model, settings.defaults.embedding) == ("loci/demo", "loci/hash")
    assert (settings.on_busy, settings.run_timeout) == (None, 86_400.0)
    assert (settings.external.listen, settings.external.password) == (None, "")
    assert settings.peers.tool_runner == "unix:///run/tool_runner.sock"


def test_all_that_can_be_set(environment: dict[str, str]) -> None:
    settings = Settings.read(
        Env(
            environment
            | {
                "LOCI_AGENT_DATABASE_URL": "postgresql://agent@/loci",
                "LOCI_DATABASE_DIRECT_URL": "postgresql://direct@/loci",
                "LOCI_DATABASE_PGBOUNCER": "true",
                "LOCI_AGENT_EXTERNAL_LISTEN": "0.0.0.0:8284",
                "LETTA_SERVER_PASSWORD": "secret",
                "LOCI_DEFAULT_MODEL": "openai/gpt-4o-mini",
                "LOCI_DEFAULT_EMBEDDING": "openai/text-embedding-3-small",
                "LOCI_BUSY": "reject",
                "LOCI_RUN_TIMEOUT": "60",
                "LOCI_STREAM_KEEP": "7200",
            }
        )
    )
    assert (settings.database.url, settings.database.direct_url, settings.database.pgbouncer) == (
        "postgresql://agent@/loci",
        "postgresql://direct@/loci",
        True,
    )
    assert (settings.external.listen, settings.external.password) == ("0.0.0.0:8284", "secret")
    assert (settings.defaults.model, settings.on_busy) == ("openai/gpt-4o-mini", "reject")
    assert (settings.run_timeout, settings.stream_keep) == (60, timedelta(hours=2))


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"LOCI_LISTEN": ""}, "LOCI_LISTEN"),
        ({"LOCI_DATABASE_URL": ""}, "LOCI_AGENT_DATABASE_URL or LOCI_DATABASE_URL"),
        ({"LOCI_MEMORY_ADDR": ""}, "LOCI_MEMORY_ADDR"),
        ({"LOCI_CONTEXT_SIGNING_KEY": ""}, "LOCI_CONTEXT_SIGNING_KEY"),
        ({"LOCI_DEFAULT_MODEL": "gpt-4o"}, "LOCI_DEFAULT_MODEL=loci/demo"),
        ({"LOCI_BUSY": "maybe"}, "wait, reject"),
        ({"LOCI_RUN_TIMEOUT": "soon"}, "LOCI_RUN_TIMEOUT"),
        ({"LOCI_STREAM_KEEP": "a day"}, "LOCI_STREAM_KEEP"),
        ({"LOCI_AGENT_EXTERNAL_LISTEN": "0.0.0.0:8284"}, "LETTA_SERVER_PASSWORD"),
    ],
)
def test_what_is_missing_or_wrong_is_named(environment: dict[str, str], changes: dict[str, str], named: str) -> None:
    with pytest.raises(SettingsError, match=named):
        Settings.read(Env(environment | changes))


def test_who_says_so_may_serve_everybody(environment: dict[str, str]) -> None:
    public = {"LOCI_AGENT_EXTERNAL_LISTEN": "0.0.0.0:8284", "LOCI_ALLOW_UNAUTHENTICATED": "true"}
    assert Settings.read(Env(environment | public)).external.password == ""
