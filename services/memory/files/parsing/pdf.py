"""PDF: the text that is in it. Pictures of text are not read."""

from collections.abc import Iterator

import pypdfium2
import pypdfium2.raw as pdfium

from services.memory.files.parsing.unreadable import Unreadable


def read(data: bytes) -> Iterator[str]:
    """Returns the text of each page, with a blank line after it. Raises Unreadable."""
    try:
        document = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        if error.err_code == pdfium.FPDF_ERR_PASSWORD:
            raise Unreadable("it is protected by a password; upload it without one") from None
        raise Unreadable("it is not a PDF, or it is damaged") from None
    has_text = False
    for number in range(len(document)):
        try:
            text = document[number].get_textpage().get_text_range()
        except pypdfium2.PdfiumError:
            continue  # one damaged page is no reason to lose the others
        has_text = has_text or bool(text.strip())
        # What PDFium gives for a hyphen at the end of a line.
        yield text.replace("\ufffe", "-").rstrip() + "\n\n"
    if not has_text:
        raise Unreadable(f"there is no text on its pages ({len(document)}); pictures and scans are not read")
