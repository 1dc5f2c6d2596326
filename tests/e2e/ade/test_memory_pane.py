"""Blocks edited in place: versions, conflicts, history."""

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from tests.e2e.ade.screen import Screen


@pytest.fixture
def block(agent: Any, client: Any) -> Any:
    """The block `human` of the agent, in its second version."""
    block = client.agents.blocks.retrieve("human", agent_id=agent.id)
    return client.blocks.update(block.id, value="Name: Ada")


def editor(screen: Screen) -> Locator:
    return screen.page.get_by_role("region", name="Block human")


def test_an_edit_is_stored_as_a_version(screen: Screen, agent: Any, block: Any, client: Any) -> None:
    screen.open(f"/agents/{agent.id}/memory")
    human = editor(screen)
    expect(human.get_by_role("heading")).to_contain_text("v2")
    human.get_by_role("textbox").fill("Name: Ada\nLikes: tea")
    expect(human.get_by_role("status")).to_have_text("Unsaved")
    screen.page.keyboard.press("Control+s")
    expect(human.get_by_role("status")).to_have_text("Saved")
    expect(human.get_by_role("heading")).to_contain_text("v3")
    assert client.blocks.retrieve(block.id).value == "Name: Ada\nLikes: tea"
    human.get_by_role("button", name="History").click()
    human.get_by_role("button", name="v3").click()
    expect(human.locator(".added")).to_have_text("+Likes: tea")
    screen.shoot("memory")


def test_what_the_agent_writes_appears(screen: Screen, agent: Any, client: Any) -> None:
    screen.open(f"/agents/{agent.id}/memory")
    screen.send("my name is Ada")
    expect(editor(screen).get_by_role("textbox")).to_have_value("Name: Ada")
    editor(screen).get_by_role("button", name="History").click()
    expect(editor(screen).get_by_role("button", name="v2")).to_contain_text("by the agent")
    editor(screen).get_by_role("button", name="v2").click()
    editor(screen).get_by_role("link", name="Why").click()
    expect(screen.page.get_by_role("article", name="Run")).to_contain_text("my name is Ada")


def test_two_edits_do_not_overwrite_each_other(
    screen: Screen, another_tab: Callable[[], Screen], agent: Any, block: Any, client: Any
) -> None:
    path = f"/agents/{agent.id}/memory"
    mine, theirs = editor(screen.open(path)), editor(other := another_tab().open(path))
    for human in (mine, theirs):
        expect(human.get_by_role("heading")).to_contain_text("v2")
    mine.get_by_role("textbox").fill("mine")
    theirs.get_by_role("textbox").fill("theirs")
    theirs.get_by_role("button", name="Save").click()
    expect(theirs.get_by_role("status")).to_have_text("Saved")
    # Its poll may see the new version before the second save does.
    mine.get_by_role("button", name="Save").click(force=True)
    conflict = mine.get_by_role("alert")
    expect(conflict).to_contain_text("theirs")
    expect(mine.get_by_role("textbox")).to_have_value("mine")
    assert client.blocks.retrieve(block.id).value == "theirs"
    screen.shoot("conflict")
    conflict.get_by_role("button", name="Keep mine").click()
    mine.get_by_role("button", name="Save").click()
    expect(mine.get_by_role("heading")).to_contain_text("v4")
    assert client.blocks.retrieve(block.id).value == "mine"
    expect(theirs.get_by_role("textbox")).to_have_value("mine")
    other.page.close()
    screen.problems.clear()  # a browser logs the 409


def test_undo_and_restore(screen: Screen, agent: Any, block: Any, client: Any) -> None:
    client.blocks.update(block.id, value="Name: Eve")
    human = editor(screen.open(f"/agents/{agent.id}/memory"))
    expect(human.get_by_role("heading")).to_contain_text("v3")
    human.get_by_role("button", name="Undo").click()
    expect(human.get_by_role("textbox")).to_have_value("Name: Ada")
    expect(human.get_by_role("heading")).to_contain_text("v4")
    human.get_by_role("button", name="History").click()
    human.get_by_role("button", name="v3").click()
    human.get_by_role("button", name="Restore").click()
    expect(human.get_by_role("textbox")).to_have_value("Name: Eve")
    expect(human.get_by_role("heading")).to_contain_text("v5")


def test_versions_by_keys(screen: Screen, agent: Any, block: Any, client: Any) -> None:
    client.blocks.update(block.id, value="Name: Eve")
    human = editor(screen.open(f"/agents/{agent.id}/memory"))
    expect(human.get_by_role("heading")).to_contain_text("v3")
    human.get_by_role("textbox").focus()
    # Down and up in the list, whose first is the newest; at its ends nothing happens.
    for key, version in (("Down", 3), ("Down", 2), ("Down", 1), ("Down", 1), ("Up", 2), ("Up", 3), ("Up", 3)):
        screen.page.keyboard.press(f"Alt+Arrow{key}")
        shown = human.get_by_role("button", name=f"v{version}", expanded=True)
        expect(shown).to_be_focused()
    expect(human.locator(".removed")).to_have_text("-Name: Ada")
    expect(human.locator(".added")).to_have_text("+Name: Eve")


def test_a_difference_has_an_address(screen: Screen, block: Any, client: Any) -> None:
    client.blocks.update(block.id, value="Name: Eve\nAge: 7")
    screen.open(f"/blocks/{block.id}/v/2..3")
    expect(screen.page.locator(".removed")).to_have_text("-Name: Ada")
    expect(screen.page.locator(".added")).to_have_text(["+Name: Eve", "+Age: 7"])
    screen.shoot("diff")


def test_the_archive(screen: Screen, agent: Any, client: Any) -> None:
    screen.open(f"/agents/{agent.id}/archive")
    panel = screen.page.get_by_role("tabpanel")
    expect(panel).to_contain_text("Nothing is here yet")
    for text, tags in (("Ada likes green tea", "taste, tea"), ("The roof leaks", "")):
        panel.get_by_role("button", name="Add a passage").click()
        panel.get_by_label("Text of the passage").fill(text)
        panel.get_by_label("Tags of the passage").fill(tags)
        panel.get_by_role("button", name="Add", exact=True).click()
        expect(panel.locator(".passage", has_text=text)).to_be_visible()
    assert {each.text for each in client.agents.passages.list(agent.id)} == {"Ada likes green tea", "The roof leaks"}
    panel.get_by_label("Search the archive").fill("green tea")
    expect(panel.locator(".passage").first).to_contain_text("Ada likes green tea")
    expect(panel.locator(".passage").first).to_contain_text("words")
    screen.shoot("archive")
    panel.get_by_label("Search the archive").fill("")
    panel.locator(".passage", has_text="roof").get_by_role("button", name="Delete this passage").click()
    expect(panel.locator(".passage")).to_have_count(1)
    screen.page.get_by_role("button", name="Undo").click()
    expect(panel.locator(".passage", has_text="roof")).to_be_visible()


def test_tags_of_the_archive(screen: Screen, agent: Any, client: Any) -> None:
    client.agents.passages.create(agent.id, text="Ada likes green tea", tags=["taste"])
    client.agents.passages.create(agent.id, text="The roof leaks", tags=["house"])
    screen.open(f"/agents/{agent.id}/archive")
    panel = screen.page.get_by_role("tabpanel")
    panel.get_by_role("button", name="Only passages with the tag taste").click()
    expect(panel.locator(".passage")).to_have_count(1)
    panel.get_by_role("button", name="Change this passage").click()
    panel.get_by_label("Text of the passage").fill("Ada likes black tea")
    # What is typed outlives the page.
    screen.page.reload()
    panel.locator(".passage", has_text="green").get_by_role("button", name="Change this passage").click()
    expect(panel.get_by_label("Text of the passage")).to_have_value("Ada likes black tea")
    panel.get_by_label("Tags of the passage").fill("taste, drink")
    panel.get_by_role("button", name="Save").click()
    expect(panel.locator(".passage", has_text="black")).to_contain_text("drink")
    stored = {each.text: sorted(each.tags) for each in client.agents.passages.list(agent.id)}
    assert stored == {"Ada likes black tea": ["drink", "taste"], "The roof leaks": ["house"]}
