"""The environment of each process, and the secrets it does not get."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from cli import ports
from cli.errors import CliError
from cli.home import Home
from cli.names import SERVICES
from cli.plan import environment
from cli.ready import ready_text
from cli.settings import RunSettings
from tests.e2e.stack import own_port

SECRETS = {
    "LETTA_SERVER_PASSWORD": "pw",
    "OPENAI_API_KEY": "sk-1",
    "ANTHROPIC_API_KEY": "sk-2",
    "LOCI_DATABASE_URL": "postgresql://x",
    "LOCI_MEMORY_DATABASE_URL": "postgresql://m",
    "LOCI_DATABASE_DIRECT_URL": "postgresql://d",
    "LOCI_WEBHOOK_SECRET": "hush",
    "AWS_SECRET_ACCESS_KEY": "sk-3",
    "AWS_SESSION_TOKEN": "sk-4",
    "GOOGLE_APPLICATION_CREDENTIALS": "/account.json",
    "GROQ_API_KEY": "sk-5",
    "LOCI_PROVIDERS": '[{"api_key": "sk-6"}]',
}
HOME = Home(Path("/h"))


def told(name: str) -> dict[str, str]:
    settings = RunSettings.from_environment({**SECRETS, "PATH": "/bin"})
    return environment(settings, HOME, name, settings.databases.get(name, ""))


@pytest.mark.parametrize(
    ("variable", "who"),
    [
        ("LETTA_SERVER_PASSWORD", {"gateway", "agent"}),
        ("LOCI_CONTEXT_SIGNING_KEY", {"gateway", "agent", "memory"}),
        ("OPENAI_API_KEY", {"llm_gateway"}),
        ("ANTHROPIC_API_KEY", {"llm_gateway"}),
        ("AWS_SECRET_ACCESS_KEY", {"llm_gateway"}),
        ("AWS_SESSION_TOKEN", {"llm_gateway"}),
        ("GOOGLE_APPLICATION_CREDENTIALS", {"llm_gateway"}),
        ("GROQ_API_KEY", {"llm_gateway"}),
        ("LOCI_PROVIDERS", {"llm_gateway"}),
        ("LOCI_DATABASE_URL", set(SERVICES)),
        ("LOCI_DATABASE_DIRECT_URL", set(SERVICES)),
        ("LOCI_MEMORY_DATABASE_URL", set()),
        ("LOCI_WEBHOOK_SECRET", {"agent"}),
        ("LOCI_CONTEXT_PUBLIC_KEYS", {"gateway", *SERVICES, "helper"}),
        ("PATH", {"gateway", *SERVICES, "helper"}),
    ],
)
def test_who_knows_what(variable: str, who: set[str]) -> None:
    assert {name for name in ("gateway", *SERVICES, "helper") if variable in told(name)} == who


def test_the_memory_service_has_a_key_of_its_own() -> None:
    keys = {
        name: environment(RunSettings.from_environment({}), HOME, name)["LOCI_CONTEXT_SIGNING_KEY"]
        for name in ("gateway", "agent", "memory")
    }
    assert keys["gateway"] == keys["agent"] != keys["memory"]


def test_each_service_has_its_own_database_and_socket() -> None:
    assert told("memory")["LOCI_DATABASE_URL"] == "postgresql://m"
    assert told("agent")["LOCI_DATABASE_URL"] == "postgresql://x"
    assert told("agent")["LOCI_LISTEN"] == told("gateway")["LOCI_AGENT_ADDR"] == "unix:///h/run/agent.sock"


def test_private_providers_are_for_whoever_sits_at_the_machine() -> None:
    def said(**values: str) -> str | None:
        settings = RunSettings.from_environment(values)
        return environment(settings, HOME, "llm_gateway").get("LOCI_ALLOW_PRIVATE_PROVIDERS")

    assert said() == "true"
    assert said(LOCI_ALLOW_PRIVATE_PROVIDERS="false") == "false"
    assert said(LETTA_SERVER_PASSWORD="x") is None
    assert said(LETTA_SERVER_PASSWORD="x", LOCI_ALLOW_PRIVATE_PROVIDERS="true") == "true"
    assert said(LETTA_SERVER_PASSWORD="x", LOCI_HOST="192.0.2.1") is None
    assert said(LOCI_REQUIRE_API_KEY="true") is None
    assert said(LOCI_PUBLIC_URL="https://loci.example.com") is None


def test_secrets_are_shown_where_nobody_logs_in() -> None:
    def said(**values: str) -> str | None:
        return environment(RunSettings.from_environment(values), HOME, "tool_runner").get("LOCI_SHOW_SECRETS")

    assert said() == "true"
    assert said(LOCI_SHOW_SECRETS="false") == "false"
    assert said(LETTA_SERVER_PASSWORD="x") is None
    assert said(LOCI_REQUIRE_API_KEY="true") is None
    assert said(LOCI_HOST="192.0.2.1", LOCI_ALLOW_UNAUTHENTICATED="true") is None


def test_a_person_alone_is_one_whom_nobody_else_can_join() -> None:
    def said(**values: str) -> str | None:
        return environment(RunSettings.from_environment(values), HOME, "tool_runner").get("LOCI_SINGLE_USER")

    assert said() == "true"
    assert said(LETTA_SERVER_PASSWORD="x") == said(LOCI_REQUIRE_API_KEY="true") == "false"
    assert said(LOCI_PUBLIC_URL="https://loci.example.com") == "false"
    assert said(LOCI_HOST="192.0.2.1", LOCI_ALLOW_UNAUTHENTICATED="true", LOCI_SINGLE_USER="true") == "false"


def test_a_port_in_use_is_an_error_unless_it_was_only_our_choice() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, socket.create_server(("127.0.0.1", 0)) as free:
        port, other = str(taken.getsockname()[1]), str(free.getsockname()[1])
        free.close()
        with pytest.raises(CliError, match=f"port {port} is in use; set LOCI_PORT"):
            ports.listen(RunSettings.from_environment({"LOCI_PORT": port}))
        with pytest.raises(CliError, match=f"port {port} is in use; set LOCI_GRPC_PORT"):
            ports.choose_grpc_port(RunSettings.from_environment({"LOCI_PORT": other, "LOCI_GRPC_PORT": port}))


def test_the_port_is_held_once_it_listens() -> None:
    with own_port() as port:
        settings = RunSettings.from_environment({"LOCI_PORT": str(port)})
        with ports.listen(settings), pytest.raises(CliError, match="is in use"):
            ports.listen(settings)


def test_an_address_of_another_machine_is_named() -> None:
    settings = RunSettings.from_environment({"LOCI_HOST": "203.0.113.7", "LETTA_SERVER_PASSWORD": "x"})
    with pytest.raises(CliError, match=r"203\.0\.113\.7 port 8283 cannot be used"):
        ports.listen(settings)


def test_the_ready_text_says_what_is_missing_and_never_a_secret() -> None:
    settings = RunSettings.from_environment(SECRETS)
    text = ready_text(settings, HOME, None)
    assert "off: port 8284 is in use" in text
    assert "OPENAI_API_KEY and ANTHROPIC_API_KEY and GROQ_API_KEY and LOCI_PROVIDERS found" in text
    assert not any(secret in text for secret in ("sk-", '"pw"', "postgresql", "hush"))
    assert "rule-based demo" in ready_text(RunSettings.from_environment({}), HOME, 8284)
