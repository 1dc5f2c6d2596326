"""Counts rows that are not imported: history, and rows that are marked as deleted."""

from cli.importing.schema import LEFT_BEHIND, MARKED, NAMES
from cli.importing.steps.common import Import


async def omissions(job: Import) -> None:
    """Reports how many rows each table has of history, and how many are marked as deleted."""
    for table, reason in LEFT_BEHIND.items():
        job.report.skip(table.replace("_", " "), reason, count=await job.source.count(table))
    for table in MARKED:
        count = await job.source.count_deleted(table)
        job.report.skip(NAMES[table], "it is marked as deleted", count=count)
