"""Tools: written, tried in the sandbox, stored, given to an agent with rules about them."""

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from tests.e2e.ade.screen import Screen

COUNT = '''import time

def count_up(number: int) -> str:
    """Count.

    Args:
        number: How far.
    """
    for each in range(number):
        print("at", each, flush=True)
        time.sleep(0.5)
    return "counted to " + str(number)
'''


@pytest.fixture
def cleanup(client: Any) -> Iterator[None]:
    """Deletes what the tests store."""
    yield
    for name in ("count_up", "shout"):
        for tool in client.tools.list(name=name).items:
            client.tools.delete(tool.id)


def source(screen: Screen) -> Locator:
    return screen.page.get_by_role("textbox", name="Source of the tool")


def write(screen: Screen, code: str) -> None:
    """Replaces the source."""
    expect(screen.page.locator(".code-mirror")).to_be_visible()
    source(screen).press("Control+a")
    source(screen).press("Delete")
    screen.page.keyboard.insert_text(code)


@pytest.mark.sandbox
def test_write_try_and_store(screen: Screen, client: Any, cleanup: None) -> None:
    screen.open("/tools/new")
    schema = screen.page.get_by_role("region", name="What the model reads")
    expect(schema).to_contain_text("Say it loudly.")
    write(screen, "def count_up(number): pass")
    expect(schema.get_by_role("status")).to_contain_text("docstring")
    write(screen, COUNT)
    expect(schema).to_contain_text("How far.")
    expect(schema.get_by_role("status")).to_have_count(0)
    attempt = screen.page.get_by_role("region", name="Try it")
    attempt.get_by_label("Arguments").fill('{"number": 8}')
    attempt.get_by_label("Arguments").press("Control+Enter")
    # Its output comes while it runs.
    expect(attempt.get_by_text("at 0")).to_be_visible()
    expect(attempt.get_by_role("button", name="Stop")).to_be_visible()
    expect(attempt.locator(".outcome")).to_contain_text("counted to 8")
    expect(attempt.locator(".outcome")).to_have_attribute("data-status", "success")
    assert client.tools.list(name="count_up").items == []
    screen.shoot("tool")
    # What is typed outlives the page.
    screen.page.reload()
    expect(source(screen)).to_contain_text("counted to")
    screen.page.get_by_role("button", name="Save").click()
    expect(screen.page.get_by_role("link", name="count_up")).to_be_visible()
    [stored] = client.tools.list(name="count_up").items
    assert stored.source_code == COUNT
    screen.problems.clear()  # a browser logs the 400 of what was no tool


@pytest.mark.sandbox
def test_what_fails_says_why_and_what_hangs_is_stopped(screen: Screen, cleanup: None) -> None:
    screen.open("/tools/new")
    write(screen, COUNT.replace('return "', 'raise ValueError("no") or "'))
    attempt = screen.page.get_by_role("region", name="Try it")
    attempt.get_by_label("Arguments").fill('{"number": 0}')
    attempt.get_by_role("button", name="Run in the sandbox").click()
    expect(attempt.locator(".outcome[data-status=error]")).to_contain_text("ValueError")
    attempt.get_by_label("Arguments").fill('{"number": 1000}')
    attempt.get_by_role("button", name="Run in the sandbox").click()
    expect(attempt.get_by_text("at 0")).to_be_visible()
    attempt.get_by_role("button", name="Stop").click()
    expect(attempt.get_by_role("button", name="Run in the sandbox")).to_be_visible()
    attempt.get_by_label("Arguments").fill("[]")
    attempt.get_by_role("button", name="Run in the sandbox").click()
    expect(attempt.get_by_role("alert")).to_contain_text("must be a JSON object")


def test_settings_secrets_and_packages(screen: Screen, client: Any, cleanup: None) -> None:
    tool = client.tools.upsert(source_code=COUNT)
    screen.open(f"/tools/{tool.id}")
    settings = screen.page.get_by_role("group", name="Settings")
    settings.get_by_label("Packages of the Python index").fill("humanize==4.0.0")
    settings.get_by_label("Secrets and variables").fill("KEY=s3cret")
    settings.get_by_label("Tags").fill("numbers")
    settings.get_by_label("Agents ask before each call").check()
    screen.page.keyboard.press("Control+s")
    expect(screen.page.get_by_text("Saved count_up")).to_be_visible()
    expect(settings).to_contain_text("Stored: KEY.")
    assert "s3cret" not in screen.page.content()
    assert "s3cret" not in screen.page.evaluate("JSON.stringify(localStorage)")
    stored = client.tools.retrieve(tool.id)
    assert (stored.tags, stored.default_requires_approval) == (["numbers"], True)
    assert [(each.name, each.version) for each in stored.pip_requirements] == [("humanize", "4.0.0")]


def test_two_who_edit_a_tool(screen: Screen, client: Any, cleanup: None) -> None:
    tool = client.tools.upsert(source_code=COUNT)
    screen.open(f"/tools/{tool.id}")
    write(screen, COUNT.replace("Count.", "Mine."))
    client.tools.update(tool.id, source_code=COUNT.replace("Count.", "Theirs."))
    screen.page.get_by_role("button", name="Save", exact=True).click()
    expect(screen.page.get_by_role("alert")).to_contain_text("meanwhile")
    expect(screen.page.locator("figure", has_text="Theirs")).to_contain_text("Theirs.")
    expect(source(screen)).to_contain_text("Mine.")
    screen.page.get_by_role("button", name="Save mine over it").click()
    expect(screen.page.get_by_text("Saved count_up")).to_be_visible()
    assert "Mine." in client.tools.retrieve(tool.id).source_code


def test_a_new_tool_replaces_none_by_mistake(screen: Screen, client: Any, cleanup: None) -> None:
    client.tools.upsert(source_code=COUNT)
    screen.open("/tools/new")
    write(screen, COUNT.replace("Count.", "Another."))
    expect(screen.page.get_by_role("region", name="What the model reads")).to_contain_text("Another.")
    screen.page.get_by_role("button", name="Save", exact=True).click()
    expect(screen.page.get_by_role("alert")).to_contain_text("There is a tool count_up")
    assert "Count." in client.tools.list(name="count_up").items[0].source_code
    screen.page.get_by_role("button", name="Discard").click()


def test_tools_and_rules_of_an_agent(screen: Screen, agent: Any, client: Any, cleanup: None) -> None:
    client.tools.upsert(source_code=COUNT)
    screen.open(f"/agents/{agent.id}/tools")
    pane = screen.page.get_by_role("tabpanel")
    pane.get_by_label("Find a tool to attach").fill("count_up")
    pane.get_by_role("button", name="Attach count_up").click()
    mine = pane.get_by_role("list", name="Tools of the agent").locator("li", has_text="count_up")
    mine.get_by_label("asks first").check()
    expect(mine.get_by_label("asks first")).to_be_checked()
    for kind, tool in (("A turn begins with it", "conversation_search"), ("It ends the turn", "count_up")):
        pane.get_by_role("button", name="Add a rule").click()
        rule = pane.get_by_role("form", name="New rule")
        rule.get_by_label("Tool", exact=True).select_option(tool)
        rule.get_by_label("Kind of rule").select_option(kind)
        rule.get_by_role("button", name="Add").click()
        expect(rule).to_have_count(0)
    pane.get_by_role("button", name="Add a rule").click()
    rule = pane.get_by_role("form", name="New rule")
    rule.get_by_label("Tool", exact=True).select_option("conversation_search")
    rule.get_by_label("Kind of rule").select_option("After it come only ...")
    rule.get_by_role("button", name="Add").click()
    expect(rule.get_by_role("alert")).to_contain_text("Choose at least one")
    rule.get_by_label("count_up").check()
    rule.get_by_role("button", name="Add").click()
    graph = pane.get_by_role("img", name="Rules as a graph")
    expect(graph.locator("rect")).to_have_count(4)
    expect(graph.locator("line")).to_have_count(3)
    screen.shoot("rules")
    kinds = {(each.type, each.tool_name) for each in client.agents.retrieve(agent.id).tool_rules}
    assert {("run_first", "conversation_search"), ("exit_loop", "count_up"), ("requires_approval", "count_up")} <= kinds
    pane.get_by_role("button", name="Remove the rule: count_up ends the turn.").click()
    expect(graph.locator("line")).to_have_count(2)
    mine.get_by_role("button", name="Detach count_up").click()
    expect(mine).to_have_count(0)


def test_what_a_tool_says_runs_nothing(screen: Screen, client: Any, cleanup: None) -> None:
    evil = "<img src=x onerror=alert(1)><script>alert(2)</script>"
    schema = {"name": "shout", "description": evil, "parameters": {"type": "object", "properties": {}}}
    tool = client.tools.create(source_code="def shout():\n    return 1\n", json_schema=schema)
    screen.open(f"/tools/{tool.id}")
    expect(screen.page.locator(".row-link", has_text="shout")).to_contain_text("<script>")
    assert screen.page.locator("img").count() == 0
    screen.problems.clear()  # source without a docstring has no schema of its own: a 400
