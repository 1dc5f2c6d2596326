"""Settings: each reader's values, and the one line that a wrong one gives."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from services.common.settings import Env, SettingsError

REPOSITORY = Path(__file__).parents[3]


def test_text_takes_the_first_that_is_set() -> None:
    env = Env({"LOCI_DATABASE_URL": "postgresql://all", "LOCI_MEMORY_DATABASE_URL": "  "})
    assert env.text("LOCI_MEMORY_DATABASE_URL", "LOCI_DATABASE_URL") == "postgresql://all"
    assert env.text("LOCI_HOST", default=None) is None


def test_a_missing_setting_names_the_variable_what_is_expected_and_an_example() -> None:
    with pytest.raises(SettingsError) as caught:
        Env({}).text("LOCI_LISTEN", expected="an address", example="unix:///run/loci/memory.sock")
    assert str(caught.value) == (
        "LOCI_LISTEN is not set; expected an address, for example LOCI_LISTEN=unix:///run/loci/memory.sock"
    )


def test_values_are_read_with_their_type(tmp_path: Path) -> None:
    env = Env({"N": "12", "S": "0.5", "F": "Yes", "G": "off", "C": "docker", "P": str(tmp_path)})
    assert env.integer("N", least=1, most=12) == 12
    assert env.seconds("S") == 0.5
    assert env.flag("F") is True
    assert env.flag("G", default=True) is False
    assert env.choice("C", ["auto", "docker"]) == "docker"
    assert env.path("P") == tmp_path
    assert Env({"W": " loci/hash=0, a/b = 0.5,"}).numbers("W") == {"loci/hash": 0, "a/b": 0.5}
    assert Env({"F": "0.25"}).fraction("F", default=1) == 0.25
    assert env.path("MISSING", default=None) is None


def test_defaults_hold_for_empty_values() -> None:
    env = Env({"X": ""})
    assert env.integer("X", default=8283) == 8283
    assert env.seconds("X", default=2.5) == 2.5
    assert env.fraction("X", default=0.4) == 0.4
    assert env.flag("X", default=True) is True
    assert env.choice("X", ["auto", "docker"], default="auto") == "auto"
    assert env.path("X", default=Path("/x")) == Path("/x")
    assert env.content("X", default="") == ""


@pytest.mark.parametrize(
    ("value", "read"),
    [
        ("twelve", lambda env: env.integer("X")),
        ("-1", lambda env: env.integer("X")),
        ("65536", lambda env: env.integer("X", most=65535)),
        ("0", lambda env: env.seconds("X")),
        ("nan", lambda env: env.seconds("X")),
        ("inf", lambda env: env.seconds("X")),
        ("5s", lambda env: env.seconds("X")),
        ("maybe", lambda env: env.flag("X")),
        ("a/b", lambda env: env.numbers("X")),
        ("a/b=-1", lambda env: env.numbers("X")),
        ("=1", lambda env: env.numbers("X")),
        ("1.5", lambda env: env.fraction("X", default=0)),
        ("half", lambda env: env.fraction("X", default=0)),
        ("podman", lambda env: env.choice("X", ["auto", "docker"])),
        ("/nowhere/at/all", lambda env: env.content("X")),
    ],
)
def test_a_wrong_value_is_one_line_with_the_name_and_an_example(value: str, read: Callable[[Env], Any]) -> None:
    with pytest.raises(SettingsError) as caught:
        read(Env({"X": value}))
    text = str(caught.value)
    assert text.startswith("X ")
    assert value in text
    assert "expected" in text
    assert "X=" in text
    assert "\n" not in text


def test_content_is_the_value_or_a_private_file(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("s3cret\n")
    file.chmod(0o600)
    assert Env({"K": "s3cret"}).content("K") == "s3cret"
    assert Env({"K": str(file)}).content("K") == "s3cret"
    file.chmod(0o640)
    with pytest.raises(SettingsError, match="chmod 600"):
        Env({"K": str(file)}).content("K")
    assert Env({"K": str(file)}).content("K", secret=False) == "s3cret"


PROGRAM = """
from services.common.settings import Env, SettingsError, run_service

async def serve(env: Env) -> None:
    print("serving", env.text("LOCI_LISTEN", expected="an address", example="0.0.0.0:50051"))

async def migrate(env: Env) -> None:
    print("migrating")

run_service(serve, migrate=migrate)
"""


@pytest.mark.parametrize(
    ("arguments", "environment", "code", "out", "err"),
    [
        ([], {"LOCI_LISTEN": "x:1"}, 0, "serving x:1\n", ""),
        (["migrate"], {}, 0, "migrating\n", ""),
        (
            [],
            {},
            2,
            "",
            "LOCI_LISTEN is not set; expected an address, for example LOCI_LISTEN=0.0.0.0:50051\n",
        ),
        (["dance"], {}, 2, "", "usage: python -m services.<name> [migrate]\n"),
        (["migrate", "now"], {}, 2, "", "usage: python -m services.<name> [migrate]\n"),
    ],
)
def test_run_service_ends_with_one_line_and_code_2_never_a_traceback(
    arguments: list[str], environment: dict[str, str], code: int, out: str, err: str
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        env=environment,
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert (done.returncode, done.stdout, done.stderr) == (code, out, err)


def test_what_is_imported_is_no_search_for_garbage() -> None:
    program = PROGRAM.replace('print("migrating")', "import gc; print(gc.get_freeze_count() > 10_000)")
    process = subprocess.run(
        [sys.executable, "-c", program, "migrate"], env={}, cwd=REPOSITORY, capture_output=True, text=True, timeout=30
    )
    assert (process.returncode, process.stdout) == (0, "True\n")
