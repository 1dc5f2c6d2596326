"""Groups: made of agents, with blocks that all of them have."""

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from tests.e2e.ade.screen import Screen
from tests.fakes.script import Reply, Rule


@pytest.fixture
def clerks(client: Any) -> Iterator[list[Any]]:
    """Three agents."""
    made = [client.agents.create(name=f"Clerk {n}", model="loci/demo", memory_blocks=[]) for n in "ABC"]
    yield made
    for agent in made:
        client.agents.delete(agent.id)


def add(where: Locator, label: str, name: str) -> None:
    """Chooses an agent by its name."""
    picker = where.get_by_role("group", name=label, exact=True)
    picker.get_by_role("searchbox").fill(name)
    picker.get_by_role("button", name=f"Add {name}").click()
    expect(picker.get_by_role("link", name=name)).to_be_visible()


def test_a_group_from_its_agents_to_its_end(screen: Screen, client: Any, clerks: list[Any]) -> None:
    page = screen.page
    block = client.blocks.create(label="minutes", value="Nothing yet.")
    screen.open("/groups/new")
    form = page.locator("form")
    form.get_by_label("What it is for").fill("The clerks")
    form.get_by_role("button", name="Make group").click()
    expect(page.get_by_role("alert")).to_contain_text("Choose at least one agent")
    add(form, "Agents", "Clerk B")
    add(form, "Agents", "Clerk A")
    form.get_by_role("button", name="Move Clerk A up").click()
    screen.shoot("new-group")
    form.get_by_role("button", name="Make group").click()
    group = page.get_by_role("article", name="Group")
    expect(group.get_by_role("heading", name="The clerks")).to_be_visible()
    expect(group).to_contain_text("Nothing was said yet.")
    screen.send("Good morning")
    expect(screen.parts("assistant")).to_have_count(2)
    expect(screen.parts("user")).to_contain_text("Good morning")
    expect(screen.composer).to_have_value("")
    screen.wait_for_end()
    path = f"/v1/groups/{page.url.rsplit('/', 1)[1]}"
    assert client.get(path, cast_to=object)["agent_ids"] == [clerks[0].id, clerks[1].id]
    group.get_by_role("searchbox", name="Find a block to share").fill("minu")
    group.get_by_role("button", name="Share minutes").click()
    expect(group.get_by_role("button", name="Detach minutes")).to_be_visible()
    assert client.agents.blocks.retrieve("minutes", agent_id=clerks[1].id).id == block.id
    screen.shoot("group")
    group.get_by_text("Change it").click()
    form.get_by_label("Kind").select_option("Supervisor")
    add(form, "The agent that leads", "Clerk A")
    form.get_by_role("button", name="Save").click()
    expect(form.get_by_role("alert")).to_contain_text("is not one of the others")
    form.get_by_role("group", name="Agents", exact=True).get_by_role("button", name="Remove Clerk A").click()
    form.get_by_role("button", name="Save").click()
    # What the kind does stands in the form before it is saved; who leads stands in the group afterwards.
    expect(group.get_by_role("heading", name="Leads")).to_be_visible()
    stored = client.get(path, cast_to=object)
    assert (stored["manager_agent_id"], stored["agent_ids"]) == (clerks[0].id, [clerks[1].id])
    group.get_by_role("button", name="Delete").click()
    group.get_by_role("button", name="Delete", exact=True).click()
    expect(page.get_by_text("Choose a group, or make one")).to_be_visible()
    expect(page.get_by_role("link", name="The clerks")).to_have_count(0)
    client.blocks.delete(block.id)


def test_a_round_is_heard_while_it_is_said(screen: Screen, client: Any, openai_fake: Any) -> None:
    members = [client.agents.create(name=name, model="openai/gpt-4o-mini").id for name in ("ada", "bob")]
    body = {"agent_ids": members, "description": "The painters", "manager_config": {"manager_type": "round_robin"}}
    group = client.post("/v1/groups/", body=body, cast_to=object)
    gate = openai_fake.gate()
    openai_fake.rules(
        Rule(Reply(text="So say I, too."), contains="[ada]"),
        Rule(Reply(text="It is as blue as can be.", gate=gate, gate_after=4), contains="Which colour?"),
    )
    screen.open(f"/groups/{group['id']}")
    screen.send("Which colour?")
    said = screen.parts("assistant")
    # Who comes later hears it, too.
    for _ in range(2):
        expect(said).to_contain_text("It is")
        expect(said.get_by_text("ada", exact=True)).to_be_visible()
        expect(said).not_to_contain_text("can be")
        expect(screen.turn).to_contain_text("Answering")
        screen.page.reload()
    gate.open()
    expect(said).to_have_count(2)
    expect(said.first).to_contain_text("It is as blue as can be.")
    expect(said.last).to_contain_text("So say I, too.")
    expect(said.last.get_by_text("bob", exact=True)).to_be_visible()
    screen.wait_for_end()
    expect(screen.parts("user")).to_have_text("You: Which colour?")
    expect(said).to_have_count(2)
    screen.shoot("group-round")
    client.delete(f"/v1/groups/{group['id']}", cast_to=object)
    for agent_id in members:
        client.agents.delete(agent_id)
