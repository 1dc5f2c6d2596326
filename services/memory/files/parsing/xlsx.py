"""Workbooks: each sheet a heading and a table of Markdown, a row a line."""

from collections.abc import Iterator
from typing import Any

import openpyxl

from services.memory.files.parsing.office_zip import open_checked


def read(data: bytes) -> Iterator[str]:
    """Yields values, not formulas. Leaves out rows and cells that are empty at the end. Raises Unreadable."""
    stream = open_checked(data, "xl/workbook.xml", "XLSX")
    workbook = openpyxl.load_workbook(stream, read_only=True, data_only=True, keep_links=False)
    for sheet in workbook.worksheets:
        yield f"## {sheet.title}\n\n"
        # What the file says of its extent may be a million empty rows, or too little.
        sheet.reset_dimensions()
        head = True
        for row in sheet.iter_rows(values_only=True):
            cells = _cells(row)
            if not cells:
                continue
            yield f"| {' | '.join(cells)} |\n"
            if head:
                yield f"|{' --- |' * len(cells)}\n"
                head = False
        yield "\n"


def _cells(row: tuple[Any, ...]) -> list[str]:
    cells = ["" if value is None else " ".join(str(value).split()).replace("|", "\\|") for value in row]
    while cells and not cells[-1]:
        cells.pop()
    return cells
