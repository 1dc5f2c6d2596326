"""Presentations: each slide a heading, its texts, tables and notes."""

from collections.abc import Iterator
from typing import Any

from pptx import Presentation
from pptx.enum.shapes import MSO_SHAPE_TYPE

from services.memory.files.parsing.office_zip import open_checked


def read(data: bytes) -> Iterator[str]:
    """Returns the slides in order. Raises Unreadable."""
    presentation = Presentation(open_checked(data, "ppt/presentation.xml", "PPTX"))
    for number, slide in enumerate(presentation.slides, 1):
        title = slide.shapes.title
        named = " ".join(title.text.split()) if title is not None else ""
        yield f"## Slide {number}{': ' + named if named else ''}\n\n"
        for shape in slide.shapes:
            if title is None or shape.shape_id != title.shape_id:
                yield from _texts(shape)
        if slide.has_notes_slide and (frame := slide.notes_slide.notes_text_frame) is not None and frame.text.strip():
            yield f"Notes: {frame.text.strip()}\n\n"


def _texts(shape: Any) -> Iterator[str]:
    if shape.shape_type == MSO_SHAPE_TYPE.GROUP:
        for part in shape.shapes:
            yield from _texts(part)
    elif shape.has_text_frame and shape.text_frame.text.strip():
        yield f"{shape.text_frame.text.strip()}\n\n"
    elif shape.has_table:
        for row in shape.table.rows:
            yield f"| {' | '.join(' '.join(cell.text.split()) for cell in row.cells)} |\n"
        yield "\n"
