"""Word documents as Markdown."""

from collections.abc import Iterator
from typing import Any

import mammoth

from services.memory.files.parsing.html import markdown
from services.memory.files.parsing.office_zip import open_checked


def read(data: bytes) -> Iterator[str]:
    """Returns the document without its pictures. Raises Unreadable."""
    stream = open_checked(data, "word/document.xml", "DOCX")
    converted = mammoth.convert_to_html(stream, convert_image=mammoth.images.img_element(_no_picture))
    yield markdown(converted.value)


def _no_picture(image: Any) -> dict[str, str]:
    # By default the picture itself would stand in the text.
    return {}
