"""Small documents of every format, and broken ones, made here so that no binary lies in the repository."""

from __future__ import annotations

import io
import zipfile

import openpyxl
from pptx import Presentation

_WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_RELATION = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def pdf(*pages: str) -> bytes:
    """A page per text, in Helvetica; a text is one line."""
    kids = " ".join(f"{4 + 2 * number} 0 R" for number in range(len(pages)))
    objects = [
        "<</Type/Catalog/Pages 2 0 R>>",
        f"<</Type/Pages/Kids[{kids}]/Count {len(pages)}>>",
        "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    for number, text in enumerate(pages):
        drawn = f"BT /F1 12 Tf 20 200 Td ({text}) Tj ET"
        objects += [
            f"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 300]/Contents {5 + 2 * number} 0 R"
            "/Resources<</Font<</F1 3 0 R>>>>>>",
            f"<</Length {len(drawn)}>>stream\n{drawn}\nendstream",
        ]
    return _pdf_of(objects)


def encrypted_pdf() -> bytes:
    """One that asks for a password."""
    key = "0" * 64
    encryption = f"<</Filter/Standard/V 1/R 2/O<{key}>/U<{key}>/P -4>>"
    objects = ["<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[]/Count 0>>", encryption]
    return _pdf_of(objects, f"/Encrypt 3 0 R/ID[<{key[:32]}><{key[:32]}>]")


def _pdf_of(objects: list[str], trailer: str = "") -> bytes:
    body, places = "%PDF-1.4\n", []
    for number, content in enumerate(objects, 1):
        places.append(len(body))
        body += f"{number} 0 obj{content}endobj\n"
    table = f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n" + "".join(
        f"{place:010} 00000 n \n" for place in places
    )
    end = f"trailer<</Size {len(objects) + 1}/Root 1 0 R{trailer}>>\nstartxref\n{len(body)}\n%%EOF"
    return (body + table + end).encode()


def docx(*paragraphs: str, heading: str = "") -> bytes:
    """A heading, where there is one, and paragraphs."""
    lines = [f"<w:p><w:r><w:t>{text}</w:t></w:r></w:p>" for text in paragraphs]
    if heading:
        style = '<w:pPr><w:pStyle w:val="Heading1"/></w:pPr>'
        lines.insert(0, f"<w:p>{style}<w:r><w:t>{heading}</w:t></w:r></w:p>")
    return zipped(
        {
            "[Content_Types].xml": (
                f'<Types xmlns="{_PACKAGE}/content-types">'
                '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
                '<Default Extension="xml" ContentType="application/xml"/><Override PartName="/word/document.xml" '
                'ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/>'
                "</Types>"
            ),
            "_rels/.rels": (
                f'<Relationships xmlns="{_PACKAGE}/relationships"><Relationship Id="rId1" '
                f'Type="{_RELATION}/officeDocument" Target="word/document.xml"/></Relationships>'
            ),
            "word/document.xml": f'<w:document xmlns:w="{_WORD}"><w:body>{"".join(lines)}</w:body></w:document>',
        }
    )


def zipped(parts: dict[str, str | bytes]) -> bytes:
    """A zip file."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return stream.getvalue()


def zip_bomb() -> bytes:
    """A document that says to be 60 MB of zeros."""
    return zipped({"word/document.xml": bytes(60_000_000)})


def xlsx(*rows: tuple[str | int, ...], title: str = "Data") -> bytes:
    """A sheet with these rows."""
    workbook = openpyxl.Workbook()
    sheet = workbook.active
    assert sheet is not None
    sheet.title = title
    for row in rows:
        sheet.append(row)
    stream = io.BytesIO()
    workbook.save(stream)
    return stream.getvalue()


def pptx(title: str, body: str, notes: str = "") -> bytes:
    """A slide."""
    presentation = Presentation()
    slide = presentation.slides.add_slide(presentation.slide_layouts[1])
    slide.shapes.title.text = title
    slide.placeholders[1].text = body
    if notes:
        slide.notes_slide.notes_text_frame.text = notes
    stream = io.BytesIO()
    presentation.save(stream)
    return stream.getvalue()
