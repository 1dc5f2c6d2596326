"""A conversation in the browser: streaming, reloads, two tabs, stops, and what an agent says that means harm."""

import base64
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.e2e.ade.screen import Screen
from tests.fakes.script import Reply, Rule, ToolCall
from tests.polling import wait_until

WORDS = [f"word{n}" for n in range(60)]
SLOW = Reply(text=" ".join(WORDS), delta_delay=0.08)


def test_an_answer_comes_with_its_tools(screen: Screen, agent: Any, client: Any) -> None:
    screen.open(f"/agents/{agent.id}")
    expect(screen.composer).to_be_focused()
    screen.send("my name is Ada")
    expect(screen.parts("tool")).to_contain_text("memory_insert")
    expect(screen.parts("assistant")).to_contain_text("Nice to meet you, Ada")
    screen.wait_for_end()
    expect(screen.parts("user")).to_have_count(1)
    expect(screen.parts("tool")).to_have_attribute("data-status", "ok")
    expect(screen.page.locator(".run-end")).to_contain_text("tokens in")
    assert client.agents.blocks.retrieve("human", agent_id=agent.id).value == "Name: Ada"
    screen.page.locator("[data-kind=tool] summary").click()
    expect(screen.page.get_by_text('"new_string": "Name: Ada"')).to_be_visible()
    screen.shoot("chat")


def test_thoughts(screen: Screen, slow_agent: Any, openai_fake: Any) -> None:
    openai_fake.reply(Reply(text="Four.", reasoning="Two and two are four."))
    screen.open(f"/agents/{slow_agent.id}")
    screen.send("2 + 2?")
    expect(screen.parts("assistant")).to_have_text("Four.")
    expect(screen.parts("thought").locator("summary")).to_contain_text("Thought")
    screen.parts("thought").locator("summary").click()
    expect(screen.parts("thought").locator(".plain")).to_have_text("Two and two are four.")


def test_reload_in_the_middle_of_an_answer(screen: Screen, slow_agent: Any, openai_fake: Any) -> None:
    openai_fake.reply(SLOW)
    screen.open(f"/agents/{slow_agent.id}")
    screen.send("count")
    expect(screen.parts("assistant")).to_contain_text("word3")
    screen.page.reload()
    expect(screen.parts("assistant")).to_contain_text("word59")
    screen.wait_for_end()
    expect(screen.parts("assistant")).to_have_text(" ".join(WORDS))
    expect(screen.parts("user")).to_have_count(1)


def test_closed_and_opened_later(
    screen: Screen, another_tab: Callable[[], Screen], slow_agent: Any, openai_fake: Any
) -> None:
    openai_fake.reply(SLOW)
    first = another_tab().open(f"/agents/{slow_agent.id}")
    first.send("count")
    expect(first.parts("assistant")).to_contain_text("word3")
    first.page.close()
    screen.open(f"/agents/{slow_agent.id}")
    expect(screen.parts("assistant")).to_have_text(" ".join(WORDS))


def test_two_tabs(screen: Screen, another_tab: Callable[[], Screen], slow_agent: Any, openai_fake: Any) -> None:
    openai_fake.reply(SLOW)
    other = another_tab().open(f"/agents/{slow_agent.id}")
    expect(other.composer).to_be_focused()
    screen.open(f"/agents/{slow_agent.id}")
    screen.send("count")
    for tab in (screen, other):
        expect(tab.parts("assistant")).to_contain_text("word59")
        tab.wait_for_end()
        expect(tab.parts("assistant")).to_have_text(" ".join(WORDS))
        expect(tab.parts("user")).to_have_count(1)
    other.check_silence()


def test_two_clicks_are_one_message(screen: Screen, agent: Any, client: Any) -> None:
    screen.open(f"/agents/{agent.id}")
    screen.composer.fill("hello")
    screen.page.get_by_role("button", name="Send").dblclick()
    expect(screen.parts("assistant")).to_contain_text("Hello")
    screen.wait_for_end()
    stored = client.agents.messages.list(agent.id).items
    assert [message.message_type for message in stored].count("user_message") == 1


def test_a_message_waits_in_line(screen: Screen, slow_agent: Any, openai_fake: Any) -> None:
    openai_fake.reply(SLOW, Reply(text="Second answer."))
    screen.open(f"/agents/{slow_agent.id}")
    screen.send("count")
    expect(screen.parts("assistant")).to_contain_text("word3")
    screen.send("and then?")
    expect(screen.turn).to_have_count(2)
    screen.wait_for_end()
    expect(screen.parts("assistant").last).to_have_text("Second answer.")
    expect(screen.parts("user")).to_have_text(["You: count", "You: and then?"])


def test_stop(screen: Screen, slow_agent: Any, openai_fake: Any) -> None:
    openai_fake.reply(SLOW)
    screen.open(f"/agents/{slow_agent.id}")
    screen.send("count")
    expect(screen.parts("assistant")).to_contain_text("word3")
    screen.page.get_by_role("button", name="Stop").click()
    expect(screen.page.get_by_text("Cancelled")).to_be_visible()
    expect(screen.parts("assistant")).to_contain_text("word3")
    expect(screen.parts("assistant")).not_to_contain_text("word59")
    expect(screen.parts("user")).to_have_count(1)


def test_a_turn_that_fails_can_be_repeated(screen: Screen, slow_agent: Any, openai_fake: Any) -> None:
    openai_fake.reply(Reply(error="bad_request", message="no such thing"))
    screen.open(f"/agents/{slow_agent.id}")
    screen.send("count")
    expect(screen.page.locator(".run-failed")).to_contain_text("Failed.")
    screen.shoot("failed")
    # The list says so, too, until it is repeated.
    row = screen.page.locator("li.agent-row", has_text="Slow")
    screen.page.get_by_role("link", name="Agents").click()
    expect(row).to_contain_text("Failed")
    row.get_by_role("link").click()
    screen.page.get_by_role("button", name="Send again").click()
    expect(screen.parts("assistant")).to_have_count(1)
    screen.wait_for_end()
    screen.page.get_by_role("link", name="Agents").click()
    expect(row).not_to_contain_text("Failed")


def test_scrolled_up_the_view_stays(screen: Screen, slow_agent: Any, openai_fake: Any) -> None:
    openai_fake.reply(
        Reply(text="\n\n".join(f"Paragraph {n}" for n in range(60))),
        Reply(deltas=[f"More {n}\n\n" for n in range(40)], delta_delay=0.05),
    )
    screen.open(f"/agents/{slow_agent.id}")
    screen.send("much")
    expect(screen.parts("assistant").last).to_contain_text("Paragraph 59")
    screen.wait_for_end()
    screen.send("more")
    expect(screen.page.get_by_text("More 3", exact=True)).to_be_in_viewport()
    messages = screen.page.get_by_role("log")
    messages.evaluate("element => element.scrollTo(0, 300)")
    expect(screen.page.get_by_role("button", name="Newest")).to_be_visible()
    screen.wait_for_end()
    assert abs(messages.evaluate("element => element.scrollTop") - 300) < 60
    screen.page.get_by_role("button", name="Newest").click()
    expect(screen.page.get_by_text("More 39", exact=True)).to_be_in_viewport()


HOSTILE = """# Hello
<img src=x onerror="window.hurt = 1"> <script>window.hurt = 2</script>

[a link](javascript:window.hurt=3) and ![a picture](https://tracker.invalid/p.png?secret=1) and
[good](https://example.com)

<iframe src="https://tracker.invalid"></iframe>

```html
<b>code</b>
```
"""


def test_what_an_agent_says_is_never_run(screen: Screen, slow_agent: Any, openai_fake: Any) -> None:
    script = "<script>window.hurt = 4</script>"
    search = ToolCall("conversation_search", {"query": script})
    openai_fake.rules(Rule(Reply(calls=[search]), step=0), Rule(Reply(text=HOSTILE), step=1))
    screen.open(f"/agents/{slow_agent.id}")
    screen.send(f"{script} <b>me</b>")
    answer = screen.parts("assistant")
    expect(answer).to_contain_text("code")
    screen.wait_for_end()
    expect(answer.get_by_role("heading", name="Hello")).to_be_visible()
    expect(screen.parts("user")).to_contain_text(f"{script} <b>me</b>")
    assert answer.locator("img, script, iframe, b").count() == 0
    assert answer.locator("a").evaluate_all("links => links.map(each => each.getAttribute('href'))") == [
        "https://tracker.invalid/p.png?secret=1",
        "https://example.com",
    ]
    assert set(answer.locator("a").evaluate_all("links => links.map(each => each.rel)")) == {"noopener noreferrer"}
    screen.page.locator("[data-kind=tool] summary").click()
    assert screen.page.evaluate("window.hurt") is None
    screen.shoot("hostile")


def test_conversations(screen: Screen, agent: Any, client: Any) -> None:
    screen.open(f"/agents/{agent.id}")
    screen.send("my name is Ada")
    expect(screen.parts("assistant")).to_contain_text("Ada")
    screen.page.get_by_role("button", name="New conversation").click()
    expect(screen.page.get_by_text("Nothing was said yet")).to_be_visible()
    screen.send("what is my name?")
    expect(screen.parts("assistant")).to_contain_text("Your name is Ada")
    screen.wait_for_end()
    # Stored, it stands as it was said.
    screen.page.reload()
    expect(screen.page.locator("[data-kind=user], [data-kind=assistant]")).to_contain_text(
        ["what is my name?", "Your name is Ada"]
    )
    screen.page.get_by_role("link", name="Main").click()
    expect(screen.parts("assistant")).to_contain_text("Nice to meet you")
    expect(screen.parts("user")).to_have_count(1)
    [made] = client.conversations.list(agent_id=agent.id)
    menu = screen.page.get_by_role("button", name="More about Conversation 1")
    menu.click()
    screen.page.get_by_role("menuitem", name="Rename").click()
    screen.page.get_by_label("New name of Conversation 1").fill("Names")
    screen.page.keyboard.press("Enter")
    expect(screen.page.get_by_role("link", name="Names")).to_be_visible()
    menu = screen.page.get_by_role("button", name="More about Names")
    menu.click()
    screen.page.get_by_role("menuitem", name="Archive").click()
    expect(menu).to_have_count(0)
    screen.page.get_by_role("button", name="Show 1 archived").click()
    menu.click()
    screen.page.get_by_role("menuitem", name="Bring back").click()
    expect(screen.page.get_by_role("button", name="archived")).to_have_count(0)
    menu.click()
    screen.page.get_by_role("menuitem", name="Delete").click()
    screen.page.get_by_role("button", name="Delete", exact=True).click()
    wait_until(lambda: not client.conversations.list(agent_id=agent.id))
    assert made.agent_id == agent.id


def test_what_was_said_is_found(screen: Screen, agent: Any, client: Any) -> None:
    other = client.conversations.create(agent_id=agent.id, summary="The other")
    client.conversations.messages.create(other.id, input="I like marzipan", streaming=False)
    client.agents.messages.create(agent.id, input="my name is Ada")
    screen.open(f"/agents/{agent.id}")
    field = screen.page.get_by_label("Search what was said")
    field.fill("marzipan")
    field.press("Enter")
    found = screen.page.get_by_role("list", name="What was found")
    hit = found.get_by_role("link").filter(has_text="You").filter(has_text="I like marzipan")
    expect(hit).to_be_visible()
    screen.shoot("found")
    hit.click()
    expect(screen.parts("user")).to_contain_text("I like marzipan")
    assert other.id in screen.page.url
    field.fill("")
    expect(found).to_have_count(0)


LINES = 130
# Scrolls down until the newest line is there. Returns the lines that were drawn on the way.
_DOWN = """
(box, last) => new Promise((done) => {
  const seen = new Set();
  const look = () => {
    box.querySelectorAll("[data-kind=user]").forEach((each) => seen.add(each.textContent));
    if (seen.has(last)) done([...seen]);
    else {
      box.scrollTop += 100;
      requestAnimationFrame(look);
    }
  };
  look();
})
"""


def test_a_hit_opens_at_its_message(screen: Screen, agent: Any, client: Any) -> None:
    said = ["I like marzipan", *(f"Line {n}." for n in range(LINES))]
    # A request has a hundred messages at most.
    for some in (said[:80], said[80:]):
        client.agents.messages.create(agent.id, messages=[{"role": "user", "content": text} for text in some])
    screen.open(f"/agents/{agent.id}")
    newest = screen.page.get_by_text(said[-1], exact=True)
    expect(newest).to_be_in_viewport()
    field = screen.page.get_by_label("Search what was said")
    field.fill("marzipan")
    field.press("Enter")
    hit = screen.page.get_by_role("list", name="What was found").get_by_role("link", name="I like marzipan").first
    message = screen.page.get_by_role("group", name="The message that was found")
    # The second time its address is there already.
    for _ in range(2):
        hit.click()
        expect(message).to_contain_text("I like marzipan")
        expect(message).to_be_focused()
        expect(message).to_be_in_viewport()
        screen.page.get_by_role("button", name="Newest").click()
        expect(newest).to_be_in_viewport()
    hit.click()
    expect(message).to_be_focused()
    screen.shoot("found-message")
    # What follows is there without a gap, as far as the newest.
    drawn = screen.page.get_by_role("log").evaluate(_DOWN, f"You: {said[-1]}")
    assert set(drawn) == {f"You: {text}" for text in said}
    # The address names it, for those who come by it. What is written there leads to the newest.
    screen.page.reload()
    expect(message).to_be_in_viewport()
    screen.send("my name is Ada")
    expect(screen.parts("assistant").last).to_contain_text("Nice to meet you, Ada")
    expect(screen.page.get_by_text("my name is Ada", exact=True)).to_be_in_viewport()


def test_two_conversations_side_by_side(screen: Screen, slow_agent: Any, openai_fake: Any, client: Any) -> None:
    other = client.conversations.create(agent_id=slow_agent.id, summary="The other")
    openai_fake.reply(SLOW, Reply(text="Here."))
    screen.open(f"/agents/{slow_agent.id}")
    screen.send("count")
    screen.page.get_by_role("button", name="More about The other").click()
    screen.page.get_by_role("menuitem", name="Open beside").click()
    left = screen.page.get_by_role("region", name="Chat", exact=True)
    right = screen.page.get_by_role("region", name="Chat beside")
    expect(right.get_by_role("heading", name="The other")).to_be_visible()
    # The one is written to while the other is answered.
    right.get_by_label("Message", exact=True).fill("where?")
    right.get_by_label("Message", exact=True).press("Enter")
    expect(right.locator("[data-kind=assistant]")).to_have_text("Here.")
    expect(left.locator("[data-kind=assistant]")).to_have_text(" ".join(WORDS))
    screen.wait_for_end()
    assert [m.message_type for m in client.conversations.messages.list(other.id).items].count("user_message") == 1
    screen.shoot("beside")
    screen.page.reload()
    right.get_by_role("button", name="Close the chat beside").click()
    expect(right).to_have_count(0)
    expect(left.locator("[data-kind=assistant]")).to_have_text(" ".join(WORDS))


def test_a_message_of_a_megabyte(screen: Screen, slow_agent: Any, openai_fake: Any, client: Any) -> None:
    openai_fake.reply(Reply(text="Long."))
    screen.open(f"/agents/{slow_agent.id}")
    text = "many words " * 100_000
    screen.composer.fill(text)
    screen.composer.press("Enter")
    # It is stored and answered, or it is refused and stands in the editor again.
    expect(screen.parts("assistant").or_(screen.page.get_by_role("alert"))).to_be_visible()
    stored = [m for m in client.agents.messages.list(slow_agent.id).items if m.message_type == "user_message"]
    if stored:
        screen.parts("user").get_by_role("button", name="Show all").click()
        expect(screen.parts("user")).to_contain_text(text.strip()[-5_000:])
    else:
        expect(screen.composer).to_have_value(text)
        screen.problems.clear()


def test_what_is_typed_stays(screen: Screen, agent: Any) -> None:
    screen.open(f"/agents/{agent.id}")
    screen.composer.fill("half a thou")
    screen.page.reload()
    expect(screen.composer).to_have_value("half a thou")


@pytest.mark.parametrize(("mebibytes", "sentence"), [(25, "a picture may have 20")])
def test_a_picture_that_is_too_large(screen: Screen, agent: Any, mebibytes: int, sentence: str) -> None:
    screen.open(f"/agents/{agent.id}")
    large = {"name": "large.png", "mimeType": "image/png", "buffer": bytes(mebibytes * 1024 * 1024)}
    screen.page.locator("input[type=file]").set_input_files(large)  # type: ignore[arg-type]
    expect(screen.page.get_by_role("alert")).to_contain_text(sentence)


def test_a_picture_is_there_after_a_reload(screen: Screen, slow_agent: Any, openai_fake: Any) -> None:
    openai_fake.reply(Reply(text="A dot."))
    screen.open(f"/agents/{slow_agent.id}")
    dot = screen.page.evaluate(
        "() => { const c = document.createElement('canvas'); c.width = c.height = 40; const g = c.getContext('2d');"
        "g.fillStyle = 'teal'; g.fillRect(0, 0, 40, 40); return c.toDataURL('image/png').split(',')[1] }"
    )
    file = {"name": "dot.png", "mimeType": "image/png", "buffer": base64.b64decode(dot)}
    screen.page.locator("input[type=file]").set_input_files(file)  # type: ignore[arg-type]
    screen.send("what is it?")
    expect(screen.parts("assistant")).to_have_text("A dot.")
    screen.wait_for_end()
    screen.page.reload()
    expect(screen.parts("user").locator("img")).to_have_js_property("naturalWidth", 40)
