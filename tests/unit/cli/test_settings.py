"""The settings that `loci run` reads from the environment."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.names import SERVICES
from cli.settings import RunSettings, is_loopback
from services.common.settings import SettingsError


def test_defaults() -> None:
    settings = RunSettings.from_environment({})
    assert (settings.host, settings.port, settings.grpc_port) == ("127.0.0.1", 8283, 8284)
    assert settings.grpc_port_is_ours
    assert settings.embedded
    assert settings.home.is_absolute()


def test_the_grpc_port_follows_the_port_until_it_is_named() -> None:
    assert RunSettings.from_environment({"LOCI_PORT": "9000"}).grpc_port == 9001
    named = RunSettings.from_environment({"LOCI_PORT": "9000", "LOCI_GRPC_PORT": "7000"})
    assert (named.grpc_port, named.grpc_port_is_ours) == (7000, False)


@pytest.mark.parametrize("port", ["x", "0", "65536", "-1", "80.5"])
def test_a_wrong_port_names_its_variable(port: str) -> None:
    with pytest.raises(SettingsError, match="LOCI_PORT"):
        RunSettings.from_environment({"LOCI_PORT": port})


def test_one_external_database_serves_all_and_one_per_service_goes_first() -> None:
    settings = RunSettings.from_environment(
        {"LOCI_DATABASE_URL": "postgresql://all", "LOCI_MEMORY_DATABASE_URL": "postgresql://memory"}
    )
    assert not settings.embedded
    assert settings.databases["memory"] == "postgresql://memory"
    assert {settings.databases[name] for name in SERVICES if name != "memory"} == {"postgresql://all"}


def test_with_some_external_databases_the_embedded_one_serves_the_rest() -> None:
    settings = RunSettings.from_environment({"LOCI_MEMORY_DATABASE_URL": "postgresql://memory"})
    assert settings.embedded
    assert settings.databases == {"memory": "postgresql://memory"}


def test_a_relative_home_does_not_depend_on_where_a_child_runs() -> None:
    assert RunSettings.from_environment({"LOCI_HOME": "data"}).home == Path.cwd() / "data"


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.5", "::", "example.org"])
def test_beyond_loopback_a_password_or_an_explicit_word_is_needed(host: str) -> None:
    with pytest.raises(SettingsError, match="LETTA_SERVER_PASSWORD"):
        RunSettings.from_environment({"LOCI_HOST": host})
    RunSettings.from_environment({"LOCI_HOST": host, "LETTA_SERVER_PASSWORD": "secret"})
    RunSettings.from_environment({"LOCI_HOST": host, "LOCI_ALLOW_UNAUTHENTICATED": "true"})


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "localhost"])
def test_loopback(host: str) -> None:
    assert is_loopback(host)
