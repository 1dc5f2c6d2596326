"""HTML as Markdown."""

from collections.abc import Iterator
from typing import Any

from bs4 import BeautifulSoup
from markdownify import MarkdownConverter

from services.memory.files.parsing.text import decode
from services.memory.files.parsing.unreadable import Unreadable

_NOT_SHOWN = ("script", "style", "noscript", "template", "svg", "iframe", "head", "title")


def read(data: bytes) -> Iterator[str]:
    """Returns what a reader of the page sees. Raises Unreadable."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        # A page may name its encoding; where it names none, it is guessed as that of any text.
        named = BeautifulSoup(data[:4_096], "html.parser").original_encoding
        text = data.decode(named, errors="replace") if named else decode(data)
    yield markdown(text)


def markdown(html: str) -> str:
    """Raises Unreadable for what is nested too deeply."""
    soup = BeautifulSoup(html, "html.parser")
    title = soup.title.get_text(" ", strip=True) if soup.title is not None and soup.h1 is None else ""
    for tag in soup(_NOT_SHOWN):
        tag.decompose()
    try:
        converted: Any = MarkdownConverter(heading_style="ATX", bullets="-", strip=["img"]).convert_soup(soup)
    except RecursionError:
        raise Unreadable("it is nested too deeply to be read") from None
    text = "\n".join(line.rstrip() for line in str(converted).splitlines()).strip()
    return f"# {' '.join(title.split())}\n\n{text}" if title else text
