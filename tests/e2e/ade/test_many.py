"""Many agents and a long conversation: how much is drawn, and whether the view jumps.

How soon after a key something is painted is written beside the pictures; a bound of milliseconds would race the clock.
"""

import io
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from statistics import median
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from tests.e2e.ade.screen import SHOTS, Screen
from tests.e2e.stack import Stack, running

AGENTS, MESSAGES, TRIES = 1_000, 5_000, 20
MOST_ROWS = 200
# From a key to the first frame that shows it, and the frame's own work.
_TO_PAINT = """
(element, key) => new Promise((resolve) => {
  element.focus();
  element.addEventListener("input", () => {
    const began = performance.now();
    requestAnimationFrame(() => setTimeout(() => resolve(performance.now() - began)));
  }, {once: true});
  document.execCommand("insertText", false, key);
})
"""
# Scrolls, and waits until there is more to scroll to, or what stands at the end.
_TO_THE_END = """
() => new Promise((done) => {
  const box = document.querySelector(".scroller");
  const before = box.scrollHeight;
  const look = () => {
    const isThere = [...box.querySelectorAll("a")].some((link) => link.textContent === "Long life");
    if (isThere || box.scrollHeight > before) done();
    else requestAnimationFrame(look);
  };
  box.scrollTo(0, before);
  look();
})
"""
_TO_THE_BEGINNING = """
(box) => new Promise((done) => {
  const before = box.scrollHeight;
  const look = () => {
    if (box.textContent.includes("Sentence 0.") || box.scrollHeight !== before) done();
    else requestAnimationFrame(look);
  };
  box.scrollTo(0, 0);
  look();
})
"""
# By how many pixels what is in view moves when older messages come before it.
_JUMP = """
(box) => new Promise((done) => {
  const top = box.getBoundingClientRect().top;
  const rows = () => [...box.querySelectorAll(".message-row")];
  const before = box.scrollHeight;
  let seen, at;
  const look = () => {
    if (box.scrollHeight <= before) {
      const row = rows().find((each) => each.getBoundingClientRect().bottom > top);
      seen = row.textContent;
      at = row.getBoundingClientRect().top;
      requestAnimationFrame(look);
    } else {
      const row = rows().find((each) => each.textContent === seen);
      done(row ? Math.abs(row.getBoundingClientRect().top - at) : 1e6);
    }
  };
  box.scrollTo(0, 300);
  look();
})
"""

pytestmark = pytest.mark.timeout(240)


@pytest.fixture(scope="module")
def crowded() -> Iterator[Stack]:
    """A Loci with many agents, one of which has said much."""
    with running() as stack:
        client = stack.client(timeout=120)
        client.agents.import_file(file=("long.af", io.BytesIO(json.dumps(long_life()).encode())))
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda n: client.agents.create(name=f"Many {n:04}", model="loci/demo"), range(AGENTS)))
        yield stack


def long_life() -> dict[str, Any]:
    """An agent file with many messages."""
    roles = ("user", "assistant")
    messages = [
        {
            "id": f"message-{n}",
            "role": roles[n % 2],
            "content": [{"type": "text", "text": f"Sentence {n}. " * (n % 7 + 1)}],
        }
        for n in range(MESSAGES)
    ]
    agent = {
        "id": "agent-0",
        "name": "Long life",
        "agent_type": "letta_v1_agent",
        "system": "You are old.",
        "llm_config": {"handle": "loci/demo"},
        "messages": messages,
        "in_context_message_ids": [message["id"] for message in messages[-10:]],
    }
    return {"agents": [agent], "blocks": [], "tools": [], "mcp_servers": [], "groups": [], "files": [], "sources": []}


@pytest.fixture
def wide(browser: Browser, crowded: Stack) -> Iterator[Screen]:
    context = browser.new_context(viewport={"width": 1280, "height": 800}, reduced_motion="reduce")
    screen = Screen(context.new_page(), crowded)
    yield screen
    screen.check_silence()
    context.close()


def measure(screen: Screen, selector: str, name: str) -> None:
    """Writes down how long a key takes to be painted, in milliseconds."""
    field = screen.page.locator(selector)
    figures = sorted(float(field.evaluate(_TO_PAINT, key)) for key in "m" * TRIES)
    SHOTS.mkdir(exist_ok=True)
    figure = {"median": round(median(figures), 1), "most": round(figures[-1], 1)}
    (SHOTS / f"{name}.json").write_text(json.dumps(figure))
    assert figure["median"] < 1_000


def test_a_thousand_agents(wide: Screen) -> None:
    wide.open()
    rows = wide.page.locator("li.agent-row")
    expect(rows.first).to_be_visible()
    oldest = wide.page.get_by_role("link", name="Long life")
    while oldest.count() == 0:
        wide.page.evaluate(_TO_THE_END)
    expect(oldest).to_be_visible()
    assert rows.count() < MOST_ROWS
    measure(wide, "input[type=search]", "key-to-paint-agents")


def test_five_thousand_messages(wide: Screen, crowded: Stack) -> None:
    [agent] = crowded.client().agents.list(query_text="Long life").items
    wide.open(f"/agents/{agent.id}")
    messages = wide.page.get_by_role("log")
    expect(wide.page.get_by_text(f"Sentence {MESSAGES - 1}.").first).to_be_in_viewport()
    assert messages.evaluate(_JUMP) < 40
    oldest = wide.page.get_by_text("Sentence 0.", exact=False)
    while oldest.count() == 0:
        messages.evaluate(_TO_THE_BEGINNING)
    expect(oldest.first).to_be_visible()
    assert wide.page.locator(".message-row").count() < MOST_ROWS
    measure(wide, "textarea", "key-to-paint-messages")
    wide.page.get_by_role("button", name="Newest").click()
    expect(wide.page.get_by_text(f"Sentence {MESSAGES - 1}.").first).to_be_in_viewport()
