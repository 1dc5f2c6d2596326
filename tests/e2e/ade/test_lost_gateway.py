"""The server goes away in the middle of an answer, or of an upload."""

from pathlib import Path
from typing import Any

from playwright.sync_api import BrowserContext, expect

from tests.e2e.ade.screen import Screen
from tests.e2e.stack import Stack, all_gone
from tests.fakes.script import Reply, Rule

WORDS = [f"word{n}" for n in range(60)]


def test_an_answer_survives_its_gateway(context: BrowserContext, own_stack: Stack, openai_fake: Any) -> None:
    # A rule: whoever takes the turn over after a standstill asks for the answer once more.
    openai_fake.rules(Rule(Reply(text=" ".join(WORDS), delta_delay=0.1)))
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


def test_an_upload_that_is_cut_off_is_sent_again(context: BrowserContext, own_stack: Stack, tmp_path: Path) -> None:
    client = own_stack.client()
    folder = client.folders.create(name="laws", embedding="loci/hash")
    large = tmp_path / "large.log"
    large.write_bytes(b"one line of a large file\n" * 80_000)
    screen = Screen(context.new_page(), own_stack).open(f"/folders/{folder.id}")
    expect(screen.page.get_by_text("No files yet")).to_be_visible()
    screen.throttle(100_000)
    screen.upload(large)
    progress = screen.page.get_by_role("progressbar")
    expect(progress).to_be_visible()
    expect(progress).not_to_have_attribute("value", "0")
    # A browser sends again by itself over a connection that it had used before: nobody may be there.
    family = own_stack.supervisor.children(recursive=True)
    own_stack.kill_supervisor()
    # Until its processes are gone the kernel takes what is sent for them: all of it, once nothing slows the browser.
    assert all_gone(family)
    # A slow browser would hear of the end as slowly as it sends.
    screen.throttle(None)
    failed = screen.page.locator(".file[data-state=failed]")
    expect(failed).to_contain_text("nothing of it was stored")
    own_stack.start()
    screen.shoot("cut-off")
    assert client.folders.files.list(folder.id).items == []
    failed.get_by_role("button", name="Send large.log again").click()
    expect(screen.page.locator(".file[data-state=completed]")).to_contain_text("large.log", timeout=60_000)
    assert len(client.folders.files.list(folder.id).items) == 1
