"""Going back in a conversation, with what the agent knew, and forth again; beginning others from a place in it."""

from collections.abc import Callable
from typing import Any

from playwright.sync_api import Locator, expect

from tests.e2e.ade.screen import Screen

SAID = ("my name is Ada", "I like tea", "I like coffee")


def told(client: Any, agent_id: str) -> None:
    """Has an agent be told things."""
    for text in SAID:
        client.agents.messages.create(agent_id, input=text)


def menu_of(screen: Screen, text: str) -> Locator:
    """Returns the menu beside what was said."""
    row = screen.page.locator(".message-row", has=screen.page.get_by_text(text, exact=True))
    row.hover()
    return row.get_by_role("button", name="More about")


def human(client: Any, agent_id: str) -> str:
    value: str = client.agents.blocks.retrieve("human", agent_id=agent_id).value
    return value


def test_back_and_forth(screen: Screen, another_tab: Callable[[], Screen], agent: Any, client: Any) -> None:
    told(client, agent.id)
    knew = human(client, agent.id)
    other = another_tab().open(f"/agents/{agent.id}")
    expect(other.parts("user")).to_have_count(3)
    screen.open(f"/agents/{agent.id}")
    menu_of(screen, "I like tea").click()
    screen.page.get_by_role("menuitem", name="Go back to before it").click()
    pane = screen.page.get_by_role("tabpanel")
    expect(pane.get_by_role("button", expanded=True)).to_contain_text("my name is Ada")
    expect(pane.locator(".journey")).to_contain_text("human was at version 2")
    screen.shoot("time")
    pane.get_by_role("button", name="Go back here").click()
    expect(pane.get_by_role("status")).to_contain_text("human: set back")
    expect(screen.parts("user")).to_have_count(1)
    # What was said there waits to be said otherwise.
    expect(screen.composer).to_have_value("I like tea")
    assert human(client, agent.id) == "Name: Ada"
    expect(other.parts("user")).to_have_count(1)
    pane.get_by_role("button", name="Undo").click()
    expect(screen.parts("user")).to_have_count(3)
    assert human(client, agent.id) == knew
    other.check_silence()


def test_another_agent_from_an_answer(screen: Screen, agent: Any, client: Any) -> None:
    told(client, agent.id)
    screen.open(f"/agents/{agent.id}")
    answer = screen.page.locator(".message-row", has=screen.parts("assistant")).first
    answer.hover()
    answer.get_by_role("button", name="More about this answer").click()
    screen.page.get_by_role("menuitem", name="Go back or fork").click()
    screen.page.get_by_role("button", name="New agent from here").click()
    expect(screen.page.get_by_role("heading", name="Ada of the page (fork)")).to_be_visible()
    expect(screen.parts("user")).to_have_text("You: my name is Ada")
    [made] = client.agents.list(name="Ada of the page (fork)").items
    assert human(client, made.id) == "Name: Ada"
    client.agents.delete(made.id)


def test_another_conversation_from_a_checkpoint(screen: Screen, agent: Any, client: Any) -> None:
    told(client, agent.id)
    screen.open(f"/agents/{agent.id}/time")
    places = screen.page.get_by_role("list", name="Checkpoints").get_by_role("button")
    expect(places).to_have_count(9)
    places.filter(has_text="Answered").nth(1).click()
    screen.page.get_by_role("button", name="New conversation from here").click()
    expect(screen.parts("user")).to_have_count(2)
    assert len(list(client.conversations.list(agent_id=agent.id))) == 1


def test_nothing_lies_before_the_first_message(screen: Screen, agent: Any, client: Any) -> None:
    client.agents.messages.create(agent.id, input=SAID[0])
    screen.open(f"/agents/{agent.id}")
    menu_of(screen, SAID[0]).click()
    screen.page.get_by_role("menuitem", name="Go back to before it").click()
    expect(screen.page.get_by_role("tabpanel")).to_contain_text("Before the first message")
