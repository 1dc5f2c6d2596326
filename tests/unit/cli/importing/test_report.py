"""The report of an import: every row has one fate."""

import json
from pathlib import Path

from cli.importing.report import Fate, Report


def test_a_row_has_one_fate() -> None:
    report = Report()
    report.take("messages", "a")
    report.change("messages", "a", "it is shorter", name="first")
    report.change("messages", "a", "it is shorter")
    report.change("messages", "a", "it is louder")
    report.take("messages", "a")
    report.leave("messages", "b", "nobody wants it")
    report.leave("messages", "c", "it is empty")
    report.take("messages", "c")
    report.change("messages", "d", "it is older")
    report.keep("messages", "d")
    for _ in range(4):
        report.count("messages")
    assert report.tables["messages"].counts() == {"taken": 1, "changed": 1, "already_there": 1, "left_out": 1}
    rows = report.as_json()["tables"]["messages"]
    assert rows["changed_rows"] == [{"id": "a", "name": "first", "reason": "it is shorter; it is louder"}]
    assert rows["left_out_rows"] == [{"id": "b", "reason": "nobody wants it"}]
    assert report.totals() == {"rows": 4, "taken": 1, "changed": 1, "already_there": 1, "left_out": 1}


def test_an_attempt_counts_if_it_succeeds() -> None:
    report, attempt = Report(), Report()
    report.take("messages", "shared")
    attempt.leave("messages", "shared", "it is a prompt here")
    attempt.leave("messages", "b", "it is empty")
    attempt.change("messages", "c", "it is cut")
    report.add(attempt)
    fates = {key: report.fate("messages", key) for key in ("shared", "b", "c", "d")}
    assert fates == {"shared": Fate.TAKEN, "b": Fate.LEFT_OUT, "c": Fate.CHANGED, "d": None}
    assert [report.is_here("messages", key) for key in fates] == [True, False, True, False]


def test_it_is_printed_and_written(tmp_path: Path) -> None:
    report = Report(dry_run=True)
    for key in ("a", "b"):
        report.count("runs")
        report.leave("runs", key, "it is history")
    report.fate("agents", "nobody")
    report.remark("something else")
    table = report.table()
    first, runs, total, *rest = table.splitlines()
    assert first.split() == ["rows", "would", "come", "changed", "already", "there", "left", "out"]
    assert (runs.split(), total.split()) == (["runs", "2", "0", "0", "0", "2"], ["total", "2", "0", "0", "0", "2"])
    assert rest == ["runs, left out:", "  2 x it is history", "note: something else"]
    report.write(tmp_path / "report.json")
    written = json.loads((tmp_path / "report.json").read_text())
    assert (written["dry_run"], written["complete"], list(written["tables"])) == (True, False, ["runs"])
