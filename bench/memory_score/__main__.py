"""`make bench-memory`: prints the score of a seed, per search mode, beside a BM25 library's."""

import argparse
import asyncio
import tempfile
from collections.abc import Mapping
from pathlib import Path

from bench.memory_score.history import Size
from bench.memory_score.score import score
from services.common.migrate import migrate
from tests.postgres import Postgres


def main() -> None:
    """Reads the arguments, measures, prints."""
    standard = Size()
    parser = argparse.ArgumentParser(prog="bench-memory", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sessions", type=int, default=standard.sessions, help="of each tenant, 32 notes each")
    parser.add_argument("--tenants", type=int, default=standard.tenants)
    parser.add_argument("--questions", type=int, default=standard.questions, help="about so many for each tenant")
    given = parser.parse_args()
    size = Size(tenants=given.tenants, sessions=given.sessions, questions=given.questions)
    with Postgres.started() as postgres, tempfile.TemporaryDirectory(prefix="loci-bench-") as folder:
        url = postgres.service_url("memory", postgres.create_database())
        asyncio.run(migrate(url, "services.memory"))
        print_table(asyncio.run(score(url, Path(folder), given.seed, size)))


def print_table(columns: Mapping[str, Mapping[str, float]]) -> None:
    """Per cent; the first column is the baseline's."""
    names = list(next(iter(columns.values())))
    print(f"{'per cent':<32}" + "".join(f"{title:>19}" for title in columns))
    for name in names:
        values = (f"{100 * column[name]:19.1f}" if name in column else f"{'-':>19}" for column in columns.values())
        print(f"{name:<32}{''.join(values)}")


main()
