"""Goes through every row of the old database and finds a reason for those that no other step took."""

from cli.importing.report import Fate
from cli.importing.schema import TABLES, Table
from cli.importing.source import Key
from cli.importing.steps.common import Import

_UNKNOWN = "this command does not know the table"
_TIMES = "agents, conversations, messages and passages keep their times of creation; those of all else are new"
_WORDS = {"conv": "conversation", "source": "folder", "sandbox": "sandbox config"}
_NO_REASON = "no step of the import took it"


async def remainder(job: Import) -> None:
    """Counts the rows of all tables; reports those without a fate."""
    unknown = await job.source.other_tables()
    for table in TABLES:
        if not table.left_behind and (columns := ", ".join(job.source.unknown_columns(table))):
            job.report.remark(f"{table.name} has columns that this command does not know and leaves out: {columns}")
    job.report.remark(_TIMES)
    for table in (*TABLES, *unknown):
        async for key in job.source.keys(table):
            job.report.count(table.name)
            if job.report.fate(table.name, key.text) is None:
                _settle(job, table, key, _UNKNOWN if table in unknown else table.left_behind)


def _settle(job: Import, table: Table, key: Key, left_behind: str) -> None:
    if key.organization and key.organization != job.source.organization:
        reason = f"it belongs to {key.organization}, which is imported by a command of its own (--organization, --into)"
    elif left_behind:
        reason = left_behind
    elif key.deleted:
        reason = "it is marked as deleted"
    else:
        fates = [(owner, job.report.fate(name, owner)) for owner, name in key.owners]
        gone = [owner for owner, fate in fates if fate in (None, Fate.LEFT_OUT)]
        if not gone and any(fate is Fate.PRESENT for _, fate in fates):
            job.report.keep(table.name, key.text)
            return
        reason = f"{_kind(gone[0])} is not here" if gone else table.otherwise or _NO_REASON
    job.report.leave(table.name, key.text, reason)


def _kind(owner: str) -> str:
    """Returns the word for an owner: many rows with the same reason are one line of the printed report."""
    prefix = owner.partition("-")[0]
    return f"its {_WORDS.get(prefix, prefix)}"
