"""Loci answers as a reference server did when it was recorded, but for what `agreed.json` says with its reason."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.helpers import skip_without_sandbox
from tests.recordings.replay import HERE, Recorder, differences, recorder

SCENARIOS = sorted(file.stem for file in (HERE / "scenarios").glob("*.json"))


@pytest.fixture(scope="module")
def loci() -> Iterator[Recorder]:
    """One for the module: a scenario deletes all that was there."""
    skip_without_sandbox()
    with recorder() as ours:
        yield ours


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_it_answers_as_recorded(loci: Recorder, tmp_path: Path, scenario: str) -> None:
    loci.record(tmp_path, scenario)
    status, report = differences(tmp_path, scenario)
    assert status == 0, report
