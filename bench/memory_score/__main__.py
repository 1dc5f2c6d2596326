"""`make bench-memory`: prints the scores of a seed's notes and talk, or of a file's conversations, per search mode,
beside a BM25 library's.
"""

import argparse
import asyncio
import tempfile
from collections.abc import Mapping
from pathlib import Path

from bench.memory_score.conversations import DataError, read_history
from bench.memory_score.history import History, Size, make
from bench.memory_score.score import score_history
from bench.memory_score.talk import TalkSize, make_talk
from services.common.migrate import migrate
from tests.postgres import Postgres


def main() -> None:
    """Reads the arguments, measures, prints."""
    standard = Size()
    parser = argparse.ArgumentParser(prog="bench-memory", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--sessions", type=int, default=standard.sessions, help="of notes of each tenant, 32 notes each"
    )
    parser.add_argument("--tenants", type=int, default=standard.tenants, help="of notes")
    parser.add_argument("--questions", type=int, default=standard.questions, help="about so many for each tenant")
    parser.add_argument("--data", type=Path, help="a file in LoCoMo's JSON form, instead of the history of a seed")
    parser.add_argument("--local", type=Path, help="the folder of a sentence-embedding model to score, too")
    given = parser.parse_args()
    histories: dict[str, History]
    depths: tuple[int, ...]
    if given.data is None:
        size = Size(tenants=given.tenants, sessions=given.sessions, questions=given.questions)
        histories, depths = {"notes": make(given.seed, size), "talk": make_talk(given.seed, TalkSize())}, (10,)
    else:
        try:
            histories, depths = {str(given.data): read_history(given.data.read_text())}, (5, 10, 20)
        except (OSError, DataError) as error:
            parser.error(str(error))
    with Postgres.started() as postgres, tempfile.TemporaryDirectory(prefix="loci-bench-") as folder:
        url = postgres.service_url("memory", postgres.create_database())
        asyncio.run(migrate(url, "services.memory"))
        for title, history in histories.items():
            print_table(title, asyncio.run(score_history(url, Path(folder), history, depths, given.local)))


def print_table(title: str, columns: Mapping[str, Mapping[str, float]]) -> None:
    """Per cent; the first column is the baseline's."""
    names = list(next(iter(columns.values())))
    print(f"{title + ', per cent':<32}" + "".join(f"{title:>19}" for title in columns))
    for name in names:
        values = (f"{100 * column[name]:19.1f}" if name in column else f"{'-':>19}" for column in columns.values())
        print(f"{name:<32}{''.join(values)}")


main()
