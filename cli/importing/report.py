"""The report of an import: what was taken, what was not, and why."""

import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass
class Entity:
    """One kind of thing. `left_out` and `changed` by id, or by what stands for many."""

    taken: int = 0
    present: int = 0
    left_out: list[dict[str, Any]] = field(default_factory=list)
    changed: list[dict[str, Any]] = field(default_factory=list)


class Report:
    """A report that grows while the import runs, printed and written at its end."""

    def __init__(self, *, dry_run: bool = False) -> None:
        self.dry_run = dry_run
        self.entities: dict[str, Entity] = {}
        self.complete = False

    def of(self, entity: str) -> Entity:
        """Returns the counts of a kind."""
        return self.entities.setdefault(entity, Entity())

    def count_taken(self, entity: str, count: int = 1) -> None:
        """Counts rows that are here now, and were not before."""
        self.of(entity).taken += count

    def count_present(self, entity: str, count: int = 1) -> None:
        """Counts rows that were here already, and stay as they are."""
        self.of(entity).present += count

    def skip(self, entity: str, reason: str, *, id: str = "", name: str = "", count: int = 1) -> None:
        """Records a row that is not taken; without an id, `count` of them."""
        if count:
            self.of(entity).left_out.append(_row(id, name, count) | {"reason": reason})

    def note_change(self, entity: str, what: str, *, id: str = "", name: str = "") -> None:
        """Records a row that is taken with a change."""
        self.of(entity).changed.append(_row(id, name, 1) | {"what": what})

    def as_json(self) -> dict[str, Any]:
        """Returns the whole report."""
        entities = {
            name: {
                "taken": one.taken,
                "already_there": one.present,
                "left_out": sum(row["count"] for row in one.left_out),
                "left_out_rows": one.left_out,
                "changed_rows": one.changed,
            }
            for name, one in self.entities.items()
        }
        return {"complete": self.complete, "dry_run": self.dry_run, "entities": entities}

    def write(self, path: Path) -> None:
        """Writes a JSON file."""
        path.write_text(json.dumps(self.as_json(), indent=2, ensure_ascii=False) + "\n")

    def table(self) -> str:
        """Returns the terminal's table: a line for each kind, and the reasons below it."""
        verb = "would be taken" if self.dry_run else "taken"
        width = max((len(name) for name in self.entities), default=0) + 2
        lines = [f"{'':{width}}{verb:>14}{'already there':>15}{'left out':>10}"]
        for name, one in self.entities.items():
            left = sum(row["count"] for row in one.left_out)
            lines.append(f"{name:{width}}{one.taken:>14,}{one.present:>15,}{left:>10,}")
        for name, one in self.entities.items():
            lines += _reasons(f"{name}, left out", "reason", one.left_out)
            lines += _reasons(f"{name}, changed", "what", one.changed)
        return "\n".join(lines)


def _row(id: str, name: str, count: int) -> dict[str, Any]:
    return {key: value for key, value in (("id", id), ("name", name)) if value} | {"count": count}


def _reasons(title: str, key: str, rows: list[dict[str, Any]]) -> list[str]:
    counted: Counter[str] = Counter()
    for row in rows:
        counted[row[key]] += row["count"]
    return [f"{title}:", *(f"  {count:,} x {reason}" for reason, count in counted.most_common())] if counted else []
