"""Folders and files: taken in with their progress, read, failed, cut off in the middle."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.e2e.ade.screen import Screen
from tests.polling import wait_until

LARGE = b"one line of a large file\n" * 40_000
SLOW = 400_000  # bytes in a second: LARGE takes some


@pytest.fixture
def folder(client: Any) -> Iterator[Any]:
    """An empty folder."""
    made = client.folders.create(name="laws of the page", embedding="loci/hash")
    yield made
    client.folders.delete(made.id)


def test_an_agent_gets_a_folder_with_a_file(screen: Screen, agent: Any, client: Any, tmp_path: Path) -> None:
    note = tmp_path / "note.md"
    note.write_text("# Cats\n\nA cat sleeps.\n")
    screen.open(f"/agents/{agent.id}/files")
    panel = screen.page.get_by_role("tabpanel")
    expect(panel).to_contain_text("This agent has no folder")
    panel.get_by_label("Name of a new folder").fill("cats")
    panel.get_by_role("button", name="Create").click()
    expect(panel.get_by_role("region", name="Folder cats")).to_contain_text("No files yet")
    screen.upload(note)
    file = panel.locator(".file", has_text="note.md")
    expect(file).to_have_attribute("data-state", "completed")
    file.get_by_role("button", name="Text").click()
    expect(file.get_by_text("A cat sleeps.")).to_be_visible()
    screen.shoot("files")
    # What fits into its view is open.
    opened = file.get_by_label("open")
    expect(opened).to_be_checked()
    opened.uncheck()
    expect(opened).not_to_be_checked()
    wait_until(lambda: [each.is_open for each in client.agents.files.list(agent.id).files] == [False])
    panel.get_by_role("button", name="Detach").click()
    expect(panel).to_contain_text("This agent has no folder")
    panel.get_by_label("Attach a folder").select_option("cats")
    expect(panel.locator(".file", has_text="note.md")).to_be_visible()
    client.folders.delete(client.folders.list(name="cats").items[0].id)


def test_an_upload_shows_how_far_it_is(screen: Screen, folder: Any, tmp_path: Path, client: Any) -> None:
    large = tmp_path / "large.log"
    large.write_bytes(LARGE)
    screen.open(f"/folders/{folder.id}")
    expect(screen.page.get_by_text("No files yet")).to_be_visible()
    screen.throttle(SLOW)
    screen.upload(large)
    progress = screen.page.get_by_role("progressbar", name="Upload of large.log")
    expect(progress).to_be_visible()
    seen = {progress.get_attribute("value")}
    expect(progress).not_to_have_attribute("value", seen.pop() or "")
    # Elsewhere it goes on.
    screen.page.get_by_role("link", name="Tools").click()
    screen.page.get_by_role("link", name="Folders").click()
    screen.page.get_by_role("link", name="laws of the page").click()
    expect(screen.page.locator(".file[data-state=completed]", has_text="large.log")).to_be_visible()
    [stored] = client.folders.files.list(folder.id).items
    assert stored.file_size == len(LARGE)
    screen.throttle(None)


def test_a_file_that_cannot_be_read(screen: Screen, folder: Any, tmp_path: Path, client: Any) -> None:
    bad, picture = tmp_path / "bad.docx", tmp_path / "cat.png"
    bad.write_bytes(b"no zip")
    picture.write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\r")
    screen.open(f"/folders/{folder.id}")
    screen.upload(bad, picture)
    failed = screen.page.locator(".file[data-state=error]", has_text="bad.docx")
    expect(failed).to_contain_text("not a DOCX file")
    refused = screen.page.locator(".file[data-state=failed]", has_text="cat.png")
    expect(refused.get_by_role("alert")).not_to_be_empty()
    failed.get_by_role("button", name="Delete bad.docx").click()
    failed.get_by_role("button", name="Delete", exact=True).click()
    expect(failed).to_have_count(0)
    refused.get_by_role("button", name="Forget cat.png").click()
    expect(refused).to_have_count(0)
    screen.problems.clear()  # a browser logs the 415


def test_a_folder_from_its_name_to_its_end(screen: Screen, client: Any) -> None:
    screen.open("/folders/new")
    form = screen.page.locator("form")
    form.get_by_label("Name").fill("of the page")
    form.get_by_label("Instructions").fill("Cite them.")
    # What is typed outlives the page.
    screen.page.reload()
    expect(form.get_by_label("Instructions")).to_have_value("Cite them.")
    form.get_by_role("button", name="Create folder").click()
    expect(screen.page.get_by_role("heading", name="of the page")).to_be_visible()
    [made] = client.folders.list(name="of the page").items
    assert made.instructions == "Cite them."
    screen.page.get_by_text("Settings").click()
    screen.page.get_by_label("Description").fill("laws")
    screen.page.keyboard.press("Control+s")
    expect(screen.page.get_by_text("Saved")).to_be_visible()
    assert client.folders.retrieve(made.id).description == "laws"
    screen.page.get_by_role("button", name="Delete").first.click()
    screen.page.get_by_role("button", name="Delete", exact=True).click()
    expect(screen.page.get_by_text("Choose a folder")).to_be_visible()
    assert client.folders.list(name="of the page").items == []
