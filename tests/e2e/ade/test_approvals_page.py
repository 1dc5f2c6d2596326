"""Calls that wait for a person."""

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.e2e.ade.screen import Screen


@pytest.fixture
def asking(agent: Any, client: Any) -> Any:
    """An agent that may not write into its memory unasked."""
    client.agents.tools.update_approval("memory_insert", agent_id=agent.id, body_requires_approval=True)
    return agent


def test_allow(screen: Screen, asking: Any, client: Any) -> None:
    screen.open(f"/agents/{asking.id}")
    screen.send("my name is Ada")
    card = screen.parts("approval")
    expect(card).to_contain_text("may memory_insert run?")
    expect(card).to_contain_text('"new_string": "Name: Ada"')
    expect(card.get_by_role("heading")).to_be_focused()
    screen.shoot("approval")
    screen.page.reload()
    card.get_by_role("button", name="Allow").click()
    expect(screen.parts("assistant")).to_contain_text("Nice to meet you, Ada")
    screen.wait_for_end()
    expect(card).to_have_count(0)
    expect(screen.parts("tool")).to_have_attribute("data-status", "ok")
    assert client.agents.blocks.retrieve("human", agent_id=asking.id).value == "Name: Ada"


def test_deny_with_a_reason(screen: Screen, asking: Any, client: Any) -> None:
    screen.open(f"/agents/{asking.id}")
    screen.send("my name is Ada")
    card = screen.parts("approval")
    card.get_by_label("Reason of a denial").fill("not now")
    card.get_by_role("button", name="Deny").click()
    expect(screen.parts("assistant")).to_contain_text("not now")
    screen.wait_for_end()
    expect(screen.parts("tool")).to_have_attribute("data-status", "denied")
    assert client.agents.blocks.retrieve("human", agent_id=asking.id).value == ""


def test_a_message_in_between_comes_back(screen: Screen, asking: Any) -> None:
    screen.open(f"/agents/{asking.id}")
    screen.send("my name is Ada")
    card = screen.parts("approval")
    expect(card).to_be_visible()
    screen.send("hello?")
    expect(screen.page.get_by_role("alert")).to_contain_text("waiting for approval")
    expect(screen.composer).to_have_value("hello?")
    expect(card.get_by_role("heading")).to_be_focused()
    expect(screen.parts("user")).to_have_count(1)


def test_answered_elsewhere(screen: Screen, another_tab: Callable[[], Screen], asking: Any) -> None:
    screen.open(f"/agents/{asking.id}")
    screen.send("my name is Ada")
    expect(screen.parts("approval")).to_be_visible()
    other = another_tab().open(f"/agents/{asking.id}")
    other.parts("approval").get_by_role("button", name="Allow").click()
    expect(screen.parts("assistant")).to_contain_text("Nice to meet you, Ada")
    expect(screen.parts("approval")).to_have_count(0)


def test_the_list_says_who_waits(screen: Screen, asking: Any) -> None:
    screen.open(f"/agents/{asking.id}")
    screen.send("my name is Ada")
    expect(screen.parts("approval")).to_be_visible()
    screen.page.get_by_role("link", name="Agents").click()
    expect(screen.page.locator("li.agent-row", has_text="Ada of the page")).to_contain_text("Needs you")


def test_each_conversation_says_whether_it_waits(screen: Screen, agent: Any, client: Any) -> None:
    rule = {"type": "requires_approval", "tool_name": "memory_insert", "timeout_seconds": 3_600}
    client.agents.update(agent.id, tool_rules=[rule])
    other = client.conversations.create(agent_id=agent.id, summary="The other")
    screen.open(f"/agents/{agent.id}/c/{other.id}")
    screen.send("my name is Ada")
    expect(screen.parts("approval").locator("time")).to_be_visible()
    screen.page.get_by_role("link", name="Main").click()
    expect(screen.parts("approval")).to_have_count(0)
    row = screen.page.locator(".conversation", has_text="The other")
    expect(row).to_contain_text("Needs you")
    [waiting] = client.get(f"/v1/agents/{agent.id}/approvals", cast_to=object)
    assert (waiting["conversation_id"], waiting["due_at"] is not None) == (other.id, True)
    row.get_by_role("link").click()
    screen.parts("approval").get_by_role("button", name="Deny").click()
    expect(screen.parts("approval")).to_have_count(0)
    screen.wait_for_end()
    expect(row).not_to_contain_text("Needs you")
