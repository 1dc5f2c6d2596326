"""LOCI_HOME: modes, the lock, short socket paths."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from cli.errors import CliError
from cli.home import SOCKET_PATH_LIMIT, Home, write_secret
from cli.secrets import PASSWORDS, passwords


@pytest.fixture(autouse=True)
def runtime(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sockets of homes that lie too deep go where the test's folders go."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path_factory.mktemp("r")))


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_our_folders_are_closed_and_others_keep_their_modes(tmp_path: Path) -> None:
    above, root = tmp_path / "above", tmp_path / "above" / "home"
    root.mkdir(parents=True)
    above.chmod(0o751)
    root.chmod(0o755)
    home = Home(root)
    home.make()
    assert (mode(above), mode(root)) == (0o751, 0o755)
    assert {mode(folder) for folder in (home.secrets, home.logs, home.sockets)} == {0o700}


def test_a_new_home_is_closed(tmp_path: Path) -> None:
    Home(tmp_path / "new").make()
    assert mode(tmp_path / "new") == 0o700


def test_a_home_that_is_a_file_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(CliError, match=r"LOCI_HOME=.* cannot be used") as raised:
            Home(path).make()
        assert raised.value.code == 2


def test_only_one_supervisor_uses_a_home(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.make()
    refusal = pytest.raises(CliError, match=rf"already runs.*process {os.getpid()}")
    with home.locked(), refusal, home.locked():
        pass
    with home.locked():
        pass


def test_sockets_of_a_deep_home_lie_where_their_path_fits(tmp_path: Path) -> None:
    home = Home(tmp_path / ("deep" * 30))
    home.make()
    assert len(os.fsencode(home.sockets / "postgres" / ".s.PGSQL.5432")) <= SOCKET_PATH_LIMIT
    assert mode(home.sockets) == 0o700
    assert home.sockets != Home(tmp_path / ("deep" * 31)).sockets


def test_a_secret_is_private_and_replaced_at_once(tmp_path: Path) -> None:
    write_secret(tmp_path / "key", "one")
    write_secret(tmp_path / "key", "two")
    assert (tmp_path / "key").read_text() == "two"
    assert mode(tmp_path / "key") == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["key"]


def test_passwords_are_made_once_and_differ(tmp_path: Path) -> None:
    made = passwords(tmp_path)
    assert passwords(tmp_path) == made
    assert len(set(made.values())) == len(made) == 5
    assert mode(tmp_path / PASSWORDS) == 0o600


@pytest.mark.parametrize("damage", ["", "{}", "[]", "not json"])
def test_damaged_passwords_are_named(tmp_path: Path, damage: str) -> None:
    (tmp_path / PASSWORDS).write_text(damage)
    with pytest.raises(CliError, match=PASSWORDS):
        passwords(tmp_path)
