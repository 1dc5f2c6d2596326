"""Runs: steps, times, tokens, costs, what the provider was asked, and those that go on in the background."""

from typing import Any

import letta_client
import pytest
from playwright.sync_api import expect

from tests.e2e.ade.screen import Screen
from tests.fakes.gate import Gate
from tests.fakes.script import Reply, ToolCall, Usage, by_step


def test_steps_and_tools(screen: Screen, agent: Any, client: Any) -> None:
    client.agents.messages.create(agent.id, input="my name is Ada")
    screen.open(f"/runs?agent={agent.id}")
    screen.page.get_by_role("link", name="Ada of the page").click()
    run = screen.page.get_by_role("article", name="Run")
    expect(run.locator(".status")).to_have_text("Done")
    expect(run.locator(".step")).to_have_count(2)
    expect(run.locator(".figures")).to_contain_text("2 without a price")
    run.get_by_role("button", name="Step 1").click()
    expect(run.locator(".version-body")).to_contain_text("tokens in")
    expect(run.locator(".version-body")).to_contain_text("was not kept")
    expect(run.locator("[data-kind=tool]")).to_contain_text("memory_insert")
    screen.shoot("run")


def test_what_the_provider_was_asked(screen: Screen, slow_agent: Any, openai_fake: Any) -> None:
    openai_fake.reply(Reply(text="Four.", usage=Usage(input=100, output=5, cached=60)))
    screen.open(f"/agents/{slow_agent.id}/runs")
    screen.page.get_by_label("Keep the provider's requests").check()
    screen.send("2 + 2?")
    expect(screen.parts("assistant")).to_have_text("Four.")
    screen.wait_for_end()
    # A run is known by what was asked.
    screen.page.get_by_role("tabpanel").get_by_role("link", name="2 + 2?").click()
    run = screen.page.get_by_role("article", name="Run")
    run.get_by_role("button", name="Step 1").click()
    expect(run.locator("figure", has_text="Request to the provider")).to_contain_text('"model": "gpt-4o-mini"')
    expect(run.locator("figure", has_text="Answer after")).to_contain_text("Four.")
    expect(run.locator(".version-body")).to_contain_text("cached: 60, 60 %")
    screen.shoot("provider-request")


def test_a_failure_has_its_cause(screen: Screen, slow_agent: Any, client: Any, openai_fake: Any) -> None:
    openai_fake.reply(Reply(error="bad_request"))
    with pytest.raises(letta_client.APIError):
        client.agents.messages.create(slow_agent.id, input="hello")
    screen.open(f"/runs?agent={slow_agent.id}&status=failed")
    screen.page.get_by_role("link", name="Slow").click()
    run = screen.page.get_by_role("article", name="Run")
    expect(run.locator(".status")).to_have_text("Failed")
    expect(run.locator(".step .error-text")).not_to_be_empty()
    screen.shoot("failed-run")


def test_a_run_in_the_background_is_watched_and_stopped(
    screen: Screen, slow_agent: Any, client: Any, openai_fake: Any
) -> None:
    gate = Gate()
    openai_fake.reply(Reply(text="Once upon a time", gate=gate, gate_after=3))
    started = client.agents.messages.create_async(slow_agent.id, messages=[{"role": "user", "content": "Tell."}])
    screen.open(f"/runs/{started.id}")
    run = screen.page.get_by_role("article", name="Run")
    expect(run).to_contain_text("in the background")
    expect(run.locator(".status")).to_have_text("Running")
    expect(run.locator("[data-kind=assistant]")).to_contain_text("Once")
    run.get_by_role("button", name="Stop").click()
    expect(run.locator(".status")).to_have_text("Cancelled")
    gate.open()


def test_a_run_that_ends_while_it_is_watched(screen: Screen, slow_agent: Any, client: Any, openai_fake: Any) -> None:
    gate = Gate()
    openai_fake.rules(*by_step(Reply(calls=(ToolCall("nothing"),)), Reply(text="Well then.", gate=gate)))
    started = client.agents.messages.create_async(slow_agent.id, messages=[{"role": "user", "content": "Go."}])
    screen.open(f"/runs/{started.id}")
    run = screen.page.get_by_role("article", name="Run")
    expect(run.locator("[data-kind=tool]")).to_contain_text("nothing")
    gate.open()
    expect(run.locator(".status")).to_have_text("Done")
    expect(run.locator("[data-kind=assistant]")).to_have_text("Well then.")
    expect(run.locator(".step")).to_have_count(2)


def test_no_such_run(screen: Screen) -> None:
    screen.open("/runs/run-00000000-0000-4000-8000-000000000000")
    expect(screen.page.get_by_text("There is no such run.")).to_be_visible()
    screen.problems.clear()  # a browser logs the 404
