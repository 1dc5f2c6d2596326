"""What fills the context window."""

from typing import Any

from playwright.sync_api import expect

from tests.e2e.ade.screen import Screen


def test_what_fills_the_window(screen: Screen, agent: Any, client: Any) -> None:
    client.agents.messages.create(agent.id, input="my name is Ada")
    screen.open(f"/agents/{agent.id}/context")
    pane = screen.page.get_by_role("tabpanel")
    overview = client.get(f"/v1/agents/{agent.id}/context", cast_to=object)
    bar = pane.get_by_role("img")
    assert f"Memory blocks {overview['num_tokens_core_memory']:,}" in (bar.get_attribute("aria-label") or "")
    memory = pane.get_by_role("button", name="Memory blocks")
    memory.click()
    expect(pane.locator(".version-body")).to_contain_text("Name: Ada")
    memory.click()
    pane.get_by_role("button", name="Tools").click()
    expect(pane.locator(".version-body").get_by_text("memory_insert", exact=True)).to_be_visible()
    screen.shoot("context")
    # How it changed with a turn.
    screen.send("I like tea")
    screen.wait_for_end()
    expect(memory).to_contain_text("changed")
    expect(pane.get_by_role("button", name="System instructions")).not_to_contain_text("changed")


def test_the_exact_request(screen: Screen, agent: Any, client: Any) -> None:
    screen.open(f"/agents/{agent.id}/context")
    pane = screen.page.get_by_role("tabpanel")
    pane.get_by_text("The exact request").click()
    pane.get_by_label("A message to try").fill("What would you be sent?")
    pane.get_by_role("button", name="Show").click()
    expect(pane.locator("figure")).to_contain_text("What would you be sent?")
    assert "What would" not in str(client.agents.messages.list(agent.id).items)
