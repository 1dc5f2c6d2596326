"""The server goes away in the middle of an answer."""

from typing import Any

from playwright.sync_api import BrowserContext, expect

from tests.e2e.ade.screen import Screen
from tests.e2e.stack import Stack
from tests.fakes.script import Reply

WORDS = [f"word{n}" for n in range(60)]


def test_an_answer_survives_its_gateway(context: BrowserContext, own_stack: Stack, openai_fake: Any) -> None:
    openai_fake.reply(Reply(text=" ".join(WORDS), delta_delay=0.1))
    agent = own_stack.client().agents.create(name="Slow", model="openai/gpt-4o-mini", memory_blocks=[])
    screen = Screen(context.new_page(), own_stack).open(f"/agents/{agent.id}")
    screen.send("count")
    expect(screen.parts("assistant")).to_contain_text("word3")
    own_stack.kill("gateway")
    expect(screen.turn).to_contain_text("Reconnecting")
    expect(screen.parts("assistant")).to_contain_text("word59", timeout=60_000)
    screen.wait_for_end()
    expect(screen.parts("assistant")).to_have_text(" ".join(WORDS))
    expect(screen.parts("user")).to_have_count(1)
