"""Documents lead somewhere: every link, its heading, and every path of the repository that a document names."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    page
    for pattern in ("*.md", "docs/**/*.md", "k8s/**/*.md")
    for page in ROOT.glob(pattern)
    if "node_modules" not in page.parts
)
_FENCE = re.compile(r"^ *```.*?^ *```", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_PATH = re.compile(r"`((?:bench|cli|docs|gateway|k8s|protos|requirements|scripts|services|tests)/[\w./-]+)`")


def prose(page: Path) -> str:
    """Returns the page without its fenced blocks."""
    return _FENCE.sub("", page.read_text())


def anchors(page: Path) -> set[str]:
    """Returns the anchors of a page's headings, as Git hosts make them."""
    headings = re.findall(r"^#+ (.*)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def dead_links(page: Path) -> Iterator[str]:
    """Yields the links of a page that lead nowhere."""
    for link in _LINK.findall(prose(page)):
        if re.match(r"https?:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
            yield link


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_document_names_what_exists(page: Path) -> None:
    missing = [path for path in _PATH.findall(prose(page)) if not (ROOT / path).exists()]
    assert (list(dead_links(page)), missing) == ([], [])


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 120


def test_every_page_is_in_the_index() -> None:
    links = (link.partition("#")[0] for link in _LINK.findall(prose(ROOT / "docs/README.md")))
    index = {(ROOT / "docs" / link).resolve() for link in links}
    pages = {page for page in (ROOT / "docs").rglob("*.md") if page.parent.name != "decisions"}
    assert pages - index == {ROOT / "docs/README.md"}
