"""The report of an import: the fate of every row of the old database, by table."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any


class Fate(StrEnum):
    """The outcome for a row."""

    TAKEN = "taken"
    CHANGED = "changed"
    """Taken, with a change."""
    PRESENT = "already_there"
    """Here since an earlier import, and left as it is."""
    LEFT_OUT = "left_out"


@dataclass
class TableReport:
    """The fates of a table's rows, by key. notes: reasons and changes; names: for people; rows: how many there are."""

    rows: int = 0
    fates: dict[str, Fate] = field(default_factory=dict)
    notes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)

    def counts(self) -> dict[str, int]:
        """Returns the number of rows with each fate."""
        counter = Counter(self.fates.values())
        return {fate.value: counter[fate] for fate in Fate}

    def noted(self, fate: Fate) -> Iterator[dict[str, str]]:
        """Yields each row of a fate that has a reason, as the report lists it."""
        for key, notes in self.notes.items():
            if self.fates[key] is fate:
                name = {"name": self.names[key]} if key in self.names else {}
                yield {"id": key, **name, "reason": "; ".join(notes)}

    def reasons(self, fate: Fate) -> Counter[str]:
        """Returns how many rows of a fate have each reason."""
        return Counter(note for key, notes in self.notes.items() if self.fates[key] is fate for note in notes)


class Report:
    """A report that grows while the import runs, printed and written at its end."""

    def __init__(self, *, dry_run: bool = False) -> None:
        self.dry_run = dry_run
        self.tables: dict[str, TableReport] = {}
        self.remarks: list[str] = []
        self.complete = False

    def take(self, table: str, key: str) -> None:
        """Records a row that is here now, and was not before."""
        if not self.is_here(table, key):
            self._of(table).fates[key] = Fate.TAKEN
            self._of(table).notes.pop(key, None)

    def change(self, table: str, key: str, change: str, name: str = "") -> None:
        """Records a row that is taken with a change."""
        self.take(table, key)
        notes = dict.fromkeys((*self._of(table).notes.get(key, ()), change))
        self._note(table, key, Fate.CHANGED, tuple(notes), name)

    def keep(self, table: str, key: str) -> None:
        """Records a row that was here already."""
        self._of(table).fates[key] = Fate.PRESENT

    def leave(self, table: str, key: str, reason: str, name: str = "") -> None:
        """Records a row that is not taken."""
        self._note(table, key, Fate.LEFT_OUT, (reason,), name)

    def count(self, table: str) -> None:
        """Counts a row of the old database."""
        self._of(table).rows += 1

    def remark(self, sentence: str) -> None:
        """Records what concerns no single row."""
        self.remarks.append(sentence)

    def fate(self, table: str, key: str) -> Fate | None:
        """Returns the outcome for a row; None: it has none yet."""
        return self._of(table).fates.get(key)

    def is_here(self, table: str, key: str) -> bool:
        """Returns whether a row is here now."""
        return self.fate(table, key) not in (None, Fate.LEFT_OUT)

    def add(self, other: "Report") -> None:
        """Adds the outcomes of an attempt that succeeded. A row that was taken once stays taken."""
        for table, one in other.tables.items():
            mine = self._of(table)
            for key, fate in one.fates.items():
                if fate is not Fate.LEFT_OUT or not self.is_here(table, key):
                    mine.fates[key] = fate
                    mine.notes.update({key: one.notes[key]} if key in one.notes else {})
            mine.names.update(one.names)

    def as_json(self) -> dict[str, Any]:
        """Returns the whole report."""
        return {
            "complete": self.complete,
            "dry_run": self.dry_run,
            "remarks": self.remarks,
            "total": self.totals(),
            "tables": {
                name: {
                    "rows": one.rows,
                    **one.counts(),
                    "changed_rows": list(one.noted(Fate.CHANGED)),
                    "left_out_rows": list(one.noted(Fate.LEFT_OUT)),
                }
                for name, one in self.tables.items()
                if one.rows or one.fates
            },
        }

    def totals(self) -> dict[str, int]:
        """Returns the counts of all tables together."""
        total = Counter[str]()
        for one in self.tables.values():
            total.update({"rows": one.rows, **one.counts()})
        return {name: total[name] for name in ("rows", *Fate)}

    def write(self, path: Path) -> None:
        """Writes a JSON file."""
        path.write_text(json.dumps(self.as_json(), indent=2, ensure_ascii=False) + "\n")

    def table(self) -> str:
        """Returns the terminal's table: a line for each table with rows, the reasons below it, and the sum."""
        rows = {name: {"rows": one.rows, **one.counts()} for name, one in self.tables.items()}
        rows = {name: counts for name, counts in rows.items() if any(counts.values())}
        width = max(map(len, rows), default=0) + 2
        verb = "would come" if self.dry_run else "taken"
        lines = [_line("", width, ("rows", verb, "changed", "already there", "left out"))]
        lines += [_line(name, width, _numbers(counts)) for name, counts in [*rows.items(), ("total", self.totals())]]
        for name in rows:
            for fate in (Fate.LEFT_OUT, Fate.CHANGED):
                lines += _reasons(f"{name}, {fate.replace('_', ' ')}", self.tables[name].reasons(fate))
        return "\n".join([*lines, *(f"note: {remark}" for remark in self.remarks)])

    def _of(self, table: str) -> TableReport:
        return self.tables.setdefault(table, TableReport())

    def _note(self, table: str, key: str, fate: Fate, notes: tuple[str, ...], name: str) -> None:
        one = self._of(table)
        one.fates[key], one.notes[key] = fate, notes
        if name:
            one.names[key] = name


def _numbers(counts: Mapping[str, int]) -> Iterator[str]:
    return (f"{counts[name]:,}" for name in ("rows", *Fate))


def _line(name: str, width: int, cells: Iterable[str]) -> str:
    return f"{name:{width}}" + "".join(f"{cell:>15}" for cell in cells)


def _reasons(title: str, counter: Counter[str]) -> list[str]:
    return [f"{title}:", *(f"  {count:,} x {reason}" for reason, count in counter.most_common())] if counter else []
