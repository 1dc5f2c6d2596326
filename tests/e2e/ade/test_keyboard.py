"""The keyboard alone: create, chat, approve, edit."""

from typing import Any

from playwright.sync_api import Page, expect

from tests.e2e.ade.screen import SHOTS, Screen

_FOCUS = "document.activeElement.getAttribute('aria-label') || document.activeElement.textContent.trim()"
_MOST_TABS = 40


def tab_to(page: Page, name: str, *, key: str = "Tab") -> None:
    """Presses Tab until something with this beginning of a name has the focus."""
    for _ in range(_MOST_TABS):
        page.keyboard.press(key)
        if str(page.evaluate(_FOCUS)).startswith(name):
            return
    raise AssertionError(f"Tab does not lead to {name}")


def test_without_a_pointer(screen: Screen, client: Any) -> None:
    page = screen.page
    screen.open()
    expect(page.get_by_role("heading", name="Agents")).to_be_visible()
    tab_to(page, "New agent")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="New agent")).to_be_visible()
    page.get_by_label("Name").focus()
    page.keyboard.type("By keys")
    page.keyboard.press("Enter")
    expect(screen.composer).to_be_focused()
    [agent] = client.agents.list(name="By keys").items
    client.agents.tools.update_approval("memory_insert", agent_id=agent.id, body_requires_approval=True)
    page.keyboard.type("my name is Ada")
    page.keyboard.press("Enter")
    expect(screen.parts("approval").get_by_role("heading")).to_be_focused()
    tab_to(page, "Allow")
    page.keyboard.press("Enter")
    expect(screen.parts("assistant")).to_contain_text("Nice to meet you, Ada")
    screen.wait_for_end()
    tab_to(page, "Memory", key="Shift+Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_role("textbox", name="Value of human")).to_have_value("Name: Ada")
    tab_to(page, "Value of human")
    page.keyboard.press("Control+End")
    page.keyboard.type(" L.")
    page.keyboard.press("Control+s")
    expect(page.get_by_role("region", name="Block human").get_by_role("status")).to_have_text("Saved")
    assert client.agents.blocks.retrieve("human", agent_id=agent.id).value == "Name: Ada L."
    client.agents.delete(agent.id)


def test_the_palette(screen: Screen, agent: Any) -> None:
    page = screen.page
    screen.open("/usage")
    expect(page.get_by_role("heading", name="Usage")).to_be_visible()
    page.keyboard.press("Control+k")
    field = page.get_by_role("combobox", name="Go to a screen or an agent")
    expect(field).to_be_focused()
    page.keyboard.type("ada of")
    expect(page.get_by_role("dialog").get_by_role("option")).to_have_count(1)
    screen.shoot("palette")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Ada of the page")).to_be_visible()
    page.keyboard.press("Control+k")
    page.keyboard.type("tools")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Tools")).to_be_visible()


def test_tabs_beside_the_chat_by_arrows(screen: Screen, agent: Any) -> None:
    page = screen.page
    screen.open(f"/agents/{agent.id}")
    page.get_by_role("tab", name="Chats").focus()
    page.keyboard.press("ArrowLeft")
    expect(page.get_by_role("tab", name="Settings")).to_be_focused()
    expect(page.get_by_role("tab", name="Settings")).to_have_attribute("aria-selected", "true")
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("tab", name="Chats")).to_have_attribute("aria-selected", "true")


def test_from_pane_to_pane(screen: Screen, agent: Any) -> None:
    page = screen.page
    screen.open(f"/agents/{agent.id}")
    expect(screen.composer).to_be_focused()
    page.keyboard.press("Shift+F6")
    expect(page.get_by_role("complementary", name="Beside the chat")).to_be_focused()
    page.keyboard.press("Shift+F6")
    expect(page.get_by_role("navigation", name="Main")).to_be_focused()
    page.keyboard.press("F6")
    page.keyboard.press("F6")
    expect(page.get_by_role("region", name="Chat")).to_be_focused()


def test_all_places_of_a_narrow_screen(screen: Screen) -> None:
    page = screen.page
    page.set_viewport_size({"width": 390, "height": 844})
    screen.open()
    main = page.get_by_role("navigation", name="Main")
    expect(main.get_by_role("link", name="Keys")).to_have_count(0)
    main.get_by_role("button", name="More").click()
    expect(page.get_by_role("menuitem", name="Folders")).to_be_focused()
    assert screen.faults() == []
    SHOTS.mkdir(exist_ok=True)
    page.screenshot(path=SHOTS / "more-390-light.png")
    page.get_by_role("menuitem", name="Keys").click()
    expect(page.get_by_role("heading", name="Keys")).to_be_visible()
    # Where one is stands in the bar.
    expect(main.get_by_role("link", name="Keys")).to_have_attribute("aria-current", "page")
