"""Servers of tools: added, read again, signed in to, gone."""

from collections.abc import Iterator
from typing import Any

import mcp_types as types
import pytest
from playwright.sync_api import BrowserContext, expect

from tests.e2e.ade.screen import Screen
from tests.e2e.stack import Stack
from tests.fakes.mcp_oauth import OAuthServer
from tests.fakes.mcp_server import TOOLS, McpServer, threaded


@pytest.fixture
def open_screen(context: BrowserContext, open_stack: Stack) -> Iterator[Screen]:
    """A tab on the Loci that may speak to this machine."""
    opened = Screen(context.new_page(), open_stack)
    yield opened
    opened.check_silence()


@pytest.fixture
def open_client(open_stack: Stack) -> Iterator[Any]:
    client: Any = open_stack.client()
    yield client
    for server in client.mcp_servers.list():
        client.mcp_servers.delete(server.id)


def add(screen: Screen, name: str, url: str) -> None:
    """Adds a server, as a person does."""
    screen.open("/mcp/new")
    screen.page.get_by_label("Name").fill(name)
    screen.page.get_by_label("Address").fill(url)
    screen.page.get_by_role("button", name="Add server").click()
    expect(screen.page.get_by_role("heading", name=name)).to_be_visible()


def test_a_server_and_its_changes(open_screen: Screen, open_client: Any) -> None:
    page = open_screen.page
    with McpServer().in_thread() as fake:
        add(open_screen, "page calculator", fake.url)
        detail = page.get_by_role("article", name="MCP server")
        expect(detail.locator("li.file")).to_have_count(len(TOOLS))
        fake.tools = [
            *TOOLS[1:],
            types.Tool(name="subtract", description="Take away.", input_schema={"type": "object"}),
        ]
        detail.get_by_role("button", name="Read its tools again").click()
        expect(detail.get_by_role("status")).to_have_text("new: subtract; gone: add")
        expect(detail).to_contain_text("Take away.")
        detail.get_by_role("button", name="Check the connection").click()
        expect(detail.get_by_role("region", name="Connect")).to_contain_text("Connected")
        open_screen.shoot("mcp")
        detail.get_by_text("Change it").click()
        detail.get_by_label("Other headers").fill("X-Team: shop")
        detail.get_by_role("button", name="Save").click()
        expect(page.get_by_text("Saved. Read its tools again")).to_be_visible()
        [stored] = open_client.mcp_servers.list()
        assert (stored.custom_headers, stored.server_url) == ({"X-Team": "shop"}, fake.url)
    # It is gone: what it had stays, with the reason.
    detail.get_by_role("button", name="Read its tools again").click()
    expect(detail.get_by_role("alert")).to_contain_text("cannot be reached")
    expect(detail.get_by_role("note")).to_contain_text("It did not answer last time.")
    expect(detail).to_contain_text("Take away.")
    detail.get_by_role("button", name="Delete").click()
    detail.get_by_role("button", name="Delete", exact=True).click()
    expect(page.get_by_text("No server yet.")).to_be_visible()
    assert list(open_client.mcp_servers.list()) == []
    open_screen.problems.clear()  # a browser logs the 502


def test_a_server_that_nobody_answers_is_kept(open_screen: Screen, open_client: Any) -> None:
    add(open_screen, "page nobody", "http://127.0.0.1:9/mcp")
    expect(open_screen.page.get_by_role("note")).to_contain_text("cannot be reached")
    expect(open_screen.page.get_by_text("None could be read yet.")).to_be_visible()
    assert [each.server_name for each in open_client.mcp_servers.list()] == ["page nobody"]


def test_signing_in(open_screen: Screen, open_client: Any) -> None:
    page = open_screen.page
    with threaded(OAuthServer().serving()) as oauth:
        add(open_screen, "page closed", oauth.mcp.url)
        expect(page.get_by_role("note")).to_contain_text("It asks you to sign in.")
        page.get_by_role("button", name="Sign in").click()
        link = page.get_by_role("link", name="Open the page of the server")
        expect(link).to_be_visible()
        open_screen.shoot("mcp-sign-in")
        with page.context.expect_page() as opened:
            link.click()
        # Loci asks who was asked for before it leads there.
        opened.value.get_by_role("button", name="Go on to").click()
        expect(page.get_by_role("region", name="Connect")).to_contain_text("Connected")
        opened.value.close()
        expect(page.get_by_role("article").locator("li.file")).to_have_count(len(TOOLS))
