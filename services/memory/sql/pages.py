"""Pages whose values are more than an answer holds."""

from typing import Any

from sqlalchemy import FromClause, Select, case, func, select

from services.memory.sql.rows import MOST_BYTES


def with_values(query: Select[Any]) -> FromClause:
    """Selects the rows of a page; their column `value` stays in the database where all exceed an answer."""
    page = query.subquery("whole")
    fit = func.sum(func.octet_length(page.c.value)).over() <= MOST_BYTES
    others = (column for column in page.c if column.name != "value")
    return select(*others, case((fit, page.c.value)).label("value")).subquery("page")
