"""Settings of MCP servers."""

import pytest

from services.common.settings import Env, SettingsError
from services.tool_runner import mcp_settings
from services.tool_runner.mcp.stdio import tcp_places


def test_programs_on_the_machine_itself_are_for_a_person_alone() -> None:
    own = {"PATH": "/bin", "HOME": "/home/me", "LOCI_ENCRYPTION_KEY": "secret", "LOCI_MCP_STDIO": "host"}
    read = mcp_settings.read(Env(own | {"LOCI_SINGLE_USER": "true"}))
    assert (read.stdio, read.on_host) == (True, {"PATH": "/bin", "HOME": "/home/me"})
    for more in ({}, {"LOCI_SINGLE_USER": "false"}):
        with pytest.raises(SettingsError, match=r"LOCI_MCP_STDIO=host .* where others can log in, use"):
            mcp_settings.read(Env(own | more))


@pytest.mark.parametrize(
    ("variables", "stdio"),
    [
        ({}, False),
        ({"LOCI_MCP_STDIO": "true"}, True),
        ({"MCP_DISABLE_STDIO": "false"}, True),
        ({"LOCI_MCP_STDIO_PROGRAMS": "true"}, True),
        ({"LOCI_MCP_STDIO_PROGRAMS": "true", "LOCI_MCP_STDIO": "false"}, False),
    ],
)
def test_whether_servers_may_be_programs(variables: dict[str, str], stdio: bool) -> None:
    read = mcp_settings.read(Env(variables))
    assert (read.stdio, read.on_host) == (stdio, None)


def test_databases_by_tcp() -> None:
    read = mcp_settings.read(Env({"LOCI_MCP_STDIO_TCP": "DB.internal:5432, localhost:6379"}))
    assert (read.stdio, [(host.name, host.port, host.raw, host.vouched) for host in read.tcp]) == (
        True,
        [("db.internal", 5432, True, True), ("localhost", 6379, True, True)],
    )
    assert [place[0] for place in tcp_places(read.tcp)] == ["127.1.0.1", "127.0.0.1"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("db.internal", "name its port"),
        ("db.internal:80", "below 1024"),
        ("*.internal:5432", "name each"),
        ("10.0.0.5:5432", "is an address"),
        ("postgresql://db:5432", "is not a host"),
    ],
)
def test_what_is_no_database(text: str, problem: str) -> None:
    with pytest.raises(SettingsError, match=rf"LOCI_MCP_STDIO_TCP: .*{problem}"):
        mcp_settings.read(Env({"LOCI_MCP_STDIO_TCP": text}))
    with pytest.raises(SettingsError, match="only bubblewrap"):
        mcp_settings.read(Env({"LOCI_MCP_STDIO_TCP": "db:5432", "LOCI_SANDBOX": "docker"}))


def test_private_hosts() -> None:
    text = "mcp-server:8000, *.Internal,[::1]:81"
    read = mcp_settings.private_hosts_of(Env({"LOCI_ALLOW_PRIVATE_HOSTS": text}))
    assert read.hosts == (("mcp-server", 8000), ("*.internal", None), ("::1", 81))
    assert not read.everywhere
    for wrong in ("http://mcp-server", "*", "a b"):
        with pytest.raises(SettingsError, match="LOCI_ALLOW_PRIVATE_HOSTS"):
            mcp_settings.private_hosts_of(Env({"LOCI_ALLOW_PRIVATE_HOSTS": wrong}))
