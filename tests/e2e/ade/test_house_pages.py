"""What keeps the house: schedules, templates, providers and models, keys and roles, usage and budgets, settings."""

from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from tests.e2e.ade.screen import Screen
from tests.e2e.conftest import PASSWORD
from tests.e2e.stack import Stack
from tests.fakes.openai_server import OpenAIServer
from tests.polling import wait_until


def test_schedules(screen: Screen, agent: Any, client: Any) -> None:
    screen.open(f"/agents/{agent.id}/schedules")
    pane = screen.page.get_by_role("tabpanel")
    expect(pane).to_contain_text("Nothing is scheduled.")
    pane.get_by_role("button", name="New schedule").click()
    pane.get_by_label("Message").fill("Summarise yesterday.")
    pane.get_by_label("Minute, hour, day").fill("nonsense")
    pane.get_by_role("button", name="Schedule", exact=True).click()
    expect(pane.get_by_role("alert")).to_contain_text("Could not schedule it")
    pane.get_by_label("Minute, hour, day").fill("0 9 * * MON-FRI")
    pane.get_by_role("button", name="Schedule", exact=True).click()
    expect(pane.locator(".file")).to_contain_text("workdays at 9")
    screen.shoot("schedules")
    [stored] = client.agents.schedule.list(agent.id).scheduled_messages
    assert stored.message.messages[0].content == "Summarise yesterday."
    # The page's own words ask for one that is sent once.
    pane.get_by_role("button", name="New schedule").click()
    pane.get_by_label("Message").fill("Once.")
    pane.get_by_label("When").select_option("Once")
    pane.get_by_label("Day and time").fill("2032-01-02T03:04")
    pane.get_by_role("button", name="Schedule", exact=True).click()
    expect(pane.locator(".file", has_text="once, ")).to_be_visible()
    for _ in range(2):
        pane.get_by_role("button", name="Delete this schedule").first.click()
        pane.get_by_role("button", name="Delete", exact=True).click()
        pane.get_by_role("button", name="Delete", exact=True).wait_for(state="detached")
    expect(pane).to_contain_text("Nothing is scheduled.")
    screen.problems.clear()  # a browser logs the 422


def test_templates(screen: Screen, agent: Any, client: Any) -> None:
    client.blocks.update(client.agents.blocks.retrieve("human", agent_id=agent.id).id, value="Works at {{company}}.")
    page = screen.page
    screen.open("/templates/new")
    page.get_by_label("Of the agent").select_option("Ada of the page")
    page.get_by_label("Name").fill("page-clerk")
    page.get_by_role("button", name="Make template").click()
    detail = page.get_by_role("article", name="Template")
    expect(detail).to_contain_text("Version 1")
    detail.get_by_role("button", name="Save the working version").click()
    expect(detail).to_contain_text("Version 2")
    detail.get_by_label("Go back to a saved version").select_option("version 1")
    expect(page.get_by_text("Version 1 is the working one again")).to_be_visible()
    screen.shoot("template")
    detail.get_by_label("Name", exact=True).fill("Clerk of the page")
    detail.get_by_label("Values for").fill("company=Loci")
    detail.get_by_role("button", name="Make agent").click()
    expect(screen.composer).to_be_focused()
    [made] = client.agents.list(name="Clerk of the page").items
    assert client.agents.blocks.retrieve("human", agent_id=made.id).value == "Works at Loci."
    client.agents.delete(made.id)
    screen.open("/templates/page-clerk")
    detail.get_by_role("button", name="Delete").click()
    detail.get_by_role("button", name="Delete", exact=True).click()
    expect(page.get_by_text("There are no templates yet.")).to_be_visible()


def test_a_provider_from_its_check_to_its_end(screen: Screen, client: Any) -> None:
    page = screen.page
    with OpenAIServer().in_thread() as vendor:
        screen.open("/models/new")
        page.get_by_label("Name").fill("page-vendor")
        page.get_by_label("Type").fill("openai")
        page.get_by_label("Key", exact=False).first.fill("sk-page")
        page.get_by_label("Address").fill("http://127.0.0.1:9/v1")
        page.get_by_role("button", name="Check").click()
        expect(page.get_by_role("alert")).to_contain_text("The check failed")
        page.get_by_label("Address").fill(vendor.base_url)
        page.get_by_role("button", name="Check").click()
        expect(page.locator(".check").get_by_role("status")).not_to_be_empty()
        screen.shoot("new-provider")
        page.get_by_role("button", name="Add provider").click()
        detail = page.get_by_role("article", name="Provider")
        expect(detail.get_by_role("table")).to_contain_text("page-vendor/gpt-4o-mini")
        detail.get_by_role("button", name="Check its key").click()
        expect(detail.locator(".check").get_by_role("status")).not_to_be_empty()
        assert "sk-page" not in page.content()
        assert "sk-page" not in page.evaluate("JSON.stringify(localStorage)")
        screen.shoot("provider")
        detail.get_by_role("button", name="Delete").click()
        detail.get_by_role("button", name="Delete", exact=True).click()
        expect(page.get_by_role("link", name="page-vendor")).to_have_count(0)
    assert "page-vendor" not in str(client.models.list())
    screen.problems.clear()  # a browser logs the check that failed


def test_all_models(screen: Screen) -> None:
    screen.open("/models/all")
    table = screen.page.get_by_role("table")
    expect(table).to_contain_text("loci/demo")
    screen.page.get_by_label("Search models").fill("gpt-4o-mini")
    expect(table).not_to_contain_text("loci/demo")
    screen.shoot("models")


def test_keys(screen: Screen, browser: Browser, agent: Any) -> None:
    page = screen.page
    screen.open("/keys/new")
    page.get_by_label("Name").fill("page-bot")
    page.get_by_label("Role").select_option("agent-only")
    page.get_by_label("Only these agents: find an agent").fill("Ada of")
    page.get_by_role("button", name="Add Ada of the page").click()
    screen.shoot("new-key")
    page.get_by_role("button", name="Make key").click()
    secret = page.get_by_label("The new key").input_value()
    assert secret.startswith("loci-key-")
    page.get_by_role("link", name="Done").click()
    detail = page.get_by_role("article", name="Key")
    expect(detail).to_contain_text("agent-only")
    expect(detail.get_by_role("link", name="Ada of the page")).to_be_visible()
    assert secret not in page.content()
    limited = browser.new_page()
    limited.add_init_script(f"sessionStorage.setItem('loci.key', {secret!r})")
    limited.goto(screen.url)
    expect(limited.get_by_role("link", name="Ada of the page")).to_be_visible()
    # What it may not see is not offered.
    expect(limited.get_by_role("navigation").get_by_role("link", name="Keys")).to_have_count(0)
    expect(limited.get_by_role("navigation").get_by_role("link", name="Tools")).to_have_count(0)
    limited.context.close()
    detail.get_by_role("button", name="Revoke").click()
    detail.get_by_role("button", name="Revoke", exact=True).click()
    expect(page.get_by_role("link", name="page-bot")).to_have_count(0)


def test_the_page_behind_a_password(browser: Browser, guarded_stack: Stack) -> None:
    """Files are sent with the credential, too, though not by the client."""
    client: Any = guarded_stack.client(api_key=PASSWORD)
    folder = client.folders.create(name="guarded", embedding="loci/hash")
    page = browser.new_page()
    page.add_init_script(f"sessionStorage.setItem('loci.key', {PASSWORD!r})")
    Screen(page, guarded_stack).open(f"/folders/{folder.id}")
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Upload files").click()
    chooser.value.set_files({"name": "note.md", "mimeType": "text/markdown", "buffer": b"# Cats\n"})
    expect(page.locator(".file[data-state=completed]")).to_contain_text("note.md")
    page.context.close()
    client.folders.delete(folder.id)


def test_who_only_reads_sees_why(browser: Browser, stack: Stack, client: Any, agent: Any) -> None:
    key = client.post("/v1/api-keys", body={"name": "page-reader", "role": "read-only"}, cast_to=object)
    page = browser.new_page()
    page.add_init_script(f"sessionStorage.setItem('loci.key', {key['key']!r})")
    screen = Screen(page, stack)
    reason = "The role read-only may not do this."
    screen.open(f"/agents/{agent.id}/memory")
    save = page.get_by_role("region", name="Block human").get_by_role("button", name="Save")
    expect(save).to_be_disabled()
    expect(save).to_have_attribute("title", reason)
    expect(page.get_by_role("textbox", name="Value of human")).to_have_accessible_description(reason)
    makers = {
        "/tools": "New tool",
        "/mcp": "New server",
        "/folders": "New folder",
        "/groups": "New group",
        "/models": "New provider",
    }
    for path, name in makers.items():
        screen.open(path)
        button = page.get_by_role("button", name=name)
        expect(button).to_be_disabled()
        expect(button).to_have_attribute("title", reason)
    screen.open("/keys")
    expect(page.get_by_text(reason)).to_be_visible()
    screen.open("/usage")
    expect(page.get_by_role("button", name="Set a budget")).to_be_disabled()
    screen.check_silence()
    page.context.close()
    client.delete(f"/v1/api-keys/{key['id']}", cast_to=object)


def test_usage_and_a_budget(screen: Screen, slow_agent: Any, client: Any, openai_fake: Any) -> None:
    client.agents.messages.create(slow_agent.id, input="hello")
    page = screen.page
    screen.open("/usage")
    expect(page.get_by_role("table")).to_contain_text("openai/gpt-4o-mini")
    expect(page.locator(".chart rect:not(.hit)").first).to_be_visible()
    page.get_by_label("Sum up by").select_option("by agent")
    expect(page.get_by_role("table")).to_contain_text("Slow")
    page.get_by_role("button", name="Set a budget").click()
    budget = page.get_by_role("form", name="Budget")
    budget.get_by_role("button", name="Set").click()
    expect(budget.get_by_role("alert")).to_contain_text("at least one limit")
    budget.get_by_label("Dollars").fill("5")
    budget.get_by_role("button", name="Set").click()
    row = page.get_by_role("region", name="Budgets").locator("li.file")
    expect(row).to_contain_text("of $5.00")
    screen.shoot("usage")
    wait_until(lambda: client.get("/v1/budgets", cast_to=object))
    row.get_by_role("button", name="Remove").click()
    row.get_by_role("button", name="Remove", exact=True).click()
    expect(row).to_have_count(0)
    assert client.get("/v1/budgets", cast_to=object) == []


def test_settings_of_an_agent(screen: Screen, agent: Any, client: Any) -> None:
    screen.open(f"/agents/{agent.id}/settings")
    pane = screen.page.get_by_role("tabpanel")
    pane.get_by_label("Instructions").fill("Be brief.")
    pane.get_by_label("Tags").fill("crm")
    screen.page.reload()
    expect(pane.get_by_label("Instructions")).to_have_value("Be brief.")
    client.agents.update(agent.id, name="Renamed", system="Be long.")
    pane.get_by_role("button", name="Save").click()
    expect(pane.get_by_role("alert")).to_contain_text("Somebody changed the instructions meanwhile")
    pane.get_by_role("button", name="Save").click()
    expect(screen.page.get_by_role("heading", name="Renamed")).to_be_visible()
    stored = client.agents.retrieve(agent.id, include=["agent.tags"])
    assert (stored.system, stored.tags, stored.name) == ("Be brief.", ["crm"], "Renamed")
    screen.shoot("settings")


@pytest.mark.parametrize("path", ["/runs", "/tools", "/mcp", "/folders", "/templates", "/groups", "/models", "/keys"])
def test_lists_say_what_to_do(screen: Screen, path: str) -> None:
    screen.open(path)
    expect(screen.page.get_by_role("region", name="Details")).to_contain_text("Choose a")
    screen.shoot(f"list-{path[1:]}")
