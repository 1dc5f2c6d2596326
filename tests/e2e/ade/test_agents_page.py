"""The first things that a person does: open the page, find agents, make one, take one back."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import letta_client
import pytest
from playwright.sync_api import Browser, expect

from tests.e2e.ade.screen import Screen
from tests.e2e.stack import Stack
from tests.polling import wait_until


@pytest.fixture
def many(client: Any) -> Iterator[list[str]]:
    """Some agents with tags."""
    ids = [client.agents.create(name=f"Row {n:03}", model="loci/demo", tags=["rows"]).id for n in range(30)]
    yield ids
    for agent_id in ids:
        client.agents.delete(agent_id)


def test_the_page_opens_without_anybody_elses_help(screen: Screen, agent: Any) -> None:
    screen.open("/")
    expect(screen.page).to_have_title("Agents · Loci")
    expect(screen.page.get_by_role("link", name="Ada of the page")).to_be_visible()


def test_nothing_is_remembered_of_the_page_but_what_has_a_hash(screen: Screen) -> None:
    response = screen.page.goto(screen.url)
    assert response is not None
    policy = response.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert response.headers["cache-control"] == "no-cache"
    script = screen.page.locator("script[type=module]").get_attribute("src")
    asset = screen.page.request.get(f"{screen.url}/{script}")
    assert asset.headers["content-encoding"] == "gzip"
    assert "immutable" in asset.headers["cache-control"]
    assert screen.page.request.get(f"{screen.url}/assets/nothing.js").status == 404


def test_search_and_tags(screen: Screen, many: list[str], agent: Any) -> None:
    screen.open()
    rows = screen.page.locator("li.agent-row")
    screen.page.get_by_label("Search agents by name").fill("row 01")
    expect(rows).to_have_count(10)
    screen.page.reload()
    expect(rows).to_have_count(10)
    screen.page.get_by_label("Search agents by name").fill("no such")
    expect(screen.page.get_by_text("No agent has this name and tag")).to_be_visible()
    screen.page.get_by_label("Search agents by name").fill("")
    screen.page.get_by_label("Only agents with the tag").select_option("rows")
    expect(screen.page.get_by_role("link", name="Ada of the page")).to_have_count(0)
    screen.shoot("agents")


def test_create_from_scratch(screen: Screen, client: Any) -> None:
    screen.open("/agents/new")
    screen.page.get_by_label("Name").fill("Made here")
    screen.page.get_by_label("Model").select_option("loci/demo")
    screen.page.get_by_label("What it knows of you").fill("Likes tea")
    screen.page.get_by_label("Tags").fill("one, two")
    screen.shoot("new-agent")
    screen.page.get_by_role("button", name="Create agent").click()
    expect(screen.composer).to_be_focused()
    [made] = client.agents.list(name="Made here", include=["agent.tags"]).items
    assert made.tags == ["one", "two"]
    assert client.agents.blocks.retrieve("human", agent_id=made.id).value == "Likes tea"
    client.agents.delete(made.id)


def test_create_from_a_template(screen: Screen, agent: Any, client: Any) -> None:
    client.templates.create(type="agent", agent_id=agent.id, name="of-ada")
    screen.open("/agents/new")
    screen.page.get_by_label("From a template").check()
    screen.page.locator("select[name=template]").select_option("of-ada")
    screen.page.get_by_label("Name").fill("Of a template")
    screen.page.get_by_role("button", name="Create agent").click()
    expect(screen.composer).to_be_focused()
    [made] = client.agents.list(name="Of a template").items
    client.agents.delete(made.id)
    client.templates.delete("of-ada")


def test_export_and_create_from_the_file(screen: Screen, agent: Any, client: Any, tmp_path: Path) -> None:
    screen.open()
    screen.page.get_by_role("button", name="More about Ada of the page").click()
    with screen.page.expect_download() as download:
        screen.page.get_by_role("menuitem", name="Export").click()
    assert download.value.suggested_filename == "Ada-of-the-page.af"
    file = tmp_path / "Ada-of-the-page.af"
    download.value.save_as(file)
    assert json.loads(file.read_text())["agents"][0]["name"] == "Ada of the page"
    screen.page.get_by_role("link", name="New agent").click()
    screen.page.get_by_label("From a file (.af)").check()
    screen.page.get_by_label("Agent file").set_input_files(file)
    screen.page.get_by_label("Name").fill("Of a file")
    screen.page.get_by_role("button", name="Create agent").click()
    expect(screen.composer).to_be_focused()
    [made] = client.agents.list(name="Of a file").items
    client.agents.delete(made.id)


def test_a_file_that_is_no_agent(screen: Screen, tmp_path: Path) -> None:
    file = tmp_path / "odd.af"
    file.write_text("{}")
    screen.open("/agents/new")
    screen.page.get_by_label("From a file (.af)").check()
    screen.page.get_by_label("Agent file").set_input_files(file)
    screen.page.get_by_role("button", name="Create agent").click()
    expect(screen.page.get_by_role("alert")).to_contain_text("Could not create the agent")
    screen.problems.clear()  # a browser logs every answer that is an error


def test_clone(screen: Screen, agent: Any, client: Any) -> None:
    client.blocks.update(client.agents.blocks.retrieve("human", agent_id=agent.id).id, value="Likes tea")
    screen.open()
    screen.page.get_by_role("button", name="More about Ada of the page").click()
    screen.page.get_by_role("menuitem", name="Clone").click()
    expect(screen.composer).to_be_focused()
    [made] = client.agents.list(name="Ada of the page (copy)").items
    assert client.agents.blocks.retrieve("human", agent_id=made.id).value == "Likes tea"
    client.agents.delete(made.id)


def test_delete_and_undo(screen: Screen, agent: Any, client: Any) -> None:
    doomed = client.agents.create(name="Doomed", model="loci/demo")
    screen.open()
    menu = screen.page.get_by_role("button", name="More about Doomed")
    menu.click()
    screen.page.get_by_role("menuitem", name="Delete").click()
    expect(menu).to_have_count(0)
    screen.page.get_by_role("button", name="Undo").click()
    expect(menu).to_be_visible()
    assert client.agents.retrieve(doomed.id).name == "Doomed"
    menu.click()
    screen.page.get_by_role("menuitem", name="Delete").click()
    expect(menu).to_have_count(0)
    # Whoever leaves the page meant it.
    screen.page.goto("about:blank")
    wait_until(lambda: not client.agents.list(name="Doomed").items)
    screen.problems.clear()


def test_keys(browser: Browser, guarded_stack: Stack) -> None:
    context = browser.new_context()
    page = context.new_page()
    screen = Screen(page, guarded_stack).open()
    field = page.get_by_label("API key or password")
    expect(field).to_be_focused()
    screen.shoot("login")
    field.fill("wrong")
    field.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("Unauthorized")
    expect(field).to_be_focused()
    field.fill("geheim")
    field.press("Enter")
    expect(page.get_by_role("heading", name="Agents")).to_be_visible()
    page.reload()
    expect(page.get_by_role("heading", name="Agents")).to_be_visible()
    assert page.evaluate("JSON.stringify(localStorage)").find("geheim") < 0
    # A tab that is opened beside asks the one that is open.
    another = context.new_page()
    another.goto(guarded_stack.url)
    expect(another.get_by_role("heading", name="Agents")).to_be_visible()
    page.get_by_role("button", name="Sign out").click()
    expect(field).to_be_visible()
    context.close()


def test_who_only_reads(browser: Browser, stack: Stack, client: Any, agent: Any) -> None:
    key = client.post("/v1/api-keys", body={"name": "reader", "role": "read-only"}, cast_to=object)["key"]
    page = browser.new_page()
    page.add_init_script(f"sessionStorage.setItem('loci.key', {key!r})")
    Screen(page, stack).open(f"/agents/{agent.id}")
    expect(page.get_by_label("Message", exact=True)).not_to_be_editable()
    send = page.get_by_role("button", name="The role read-only may not do this.").last
    expect(send).to_have_attribute("aria-disabled", "true")
    page.context.close()


def test_a_key_that_ends_loses_nothing(browser: Browser, stack: Stack, client: Any, agent: Any) -> None:
    made = client.post("/v1/api-keys", body={"name": "short", "role": "developer"}, cast_to=object)
    page = browser.new_page()
    page.add_init_script(f"sessionStorage.getItem('loci.key') ?? sessionStorage.setItem('loci.key', {made['key']!r})")
    screen = Screen(page, stack).open(f"/agents/{agent.id}")
    expect(screen.composer).to_be_focused()
    client.delete(f"/v1/api-keys/{made['id']}", cast_to=object)
    other = stack.client(api_key=made["key"])
    wait_until(lambda: _is_refused(other))
    screen.send("this is long to type")
    expect(page.get_by_label("API key or password")).to_be_visible()
    again = client.post("/v1/api-keys", body={"name": "next", "role": "developer"}, cast_to=object)["key"]
    page.get_by_label("API key or password").fill(again)
    page.keyboard.press("Enter")
    expect(screen.composer).to_have_value("this is long to type")
    page.context.close()


def _is_refused(client: Any) -> bool:
    try:
        client.agents.list(limit=1)
    except letta_client.AuthenticationError:
        return True
    return False
