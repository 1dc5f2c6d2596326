"""A headless Chromium of this machine, and the page as built of the sources here."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, sync_playwright

from tests.e2e.ade.screen import Screen
from tests.e2e.stack import ROOT, Stack

# Containers have no user namespaces, and small /dev/shm.
_ARGUMENTS = ("--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu")
_WIDE = {"width": 1280, "height": 800}


def chromium() -> str:
    """Returns the path of Chromium. Skips where there is none."""
    path = os.environ.get("LOCI_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    if path is None:
        pytest.skip("needs Chromium (Debian: apt-get install chromium), or its path in LOCI_CHROMIUM")
    return path


@pytest.fixture(scope="session")
def built_page() -> Path:
    """The folder of the page, built if it is not. Skips where npm is missing."""
    folder = ROOT / "ade" / "dist"
    if shutil.which("npm") is None and not (folder / "index.html").is_file():
        pytest.skip("needs npm, or a page that was built (make ade)")
    command = [sys.executable, str(ROOT / "scripts" / "ade.py"), "build"]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=110)
    assert result.returncode == 0, result.stderr
    return folder


@pytest.fixture(scope="module")
def browser(built_page: Path) -> Iterator[Browser]:
    """The browser of a module: its event loop runs in this thread, where other modules begin loops of their own."""
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium(), args=_ARGUMENTS)
        yield started
        started.close()


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    """A browser without memory: no storage, no other tabs."""
    made = browser.new_context(viewport=_WIDE, reduced_motion="reduce")  # type: ignore[arg-type]
    yield made
    made.close()


@pytest.fixture
def screen(context: BrowserContext, stack: Stack) -> Iterator[Screen]:
    """A tab on the session's Loci. Afterwards the console must be empty and nothing foreign asked for."""
    opened = Screen(context.new_page(), stack)
    yield opened
    opened.check_silence()


@pytest.fixture
def another_tab(context: BrowserContext, stack: Stack) -> Callable[[], Screen]:
    """Opens more tabs of the same browser."""
    return lambda: Screen(context.new_page(), stack)


@pytest.fixture
def agent(client: Any) -> Iterator[Any]:
    """An agent of the demo model."""
    made = client.agents.create(
        name="Ada of the page",
        model="loci/demo",
        memory_blocks=[{"label": "human", "value": ""}, {"label": "persona", "value": ""}],
    )
    yield made
    client.agents.delete(made.id)


@pytest.fixture
def slow_agent(client: Any, openai_fake: Any) -> Iterator[Any]:
    """An agent whose model answers as `openai_fake` is told to."""
    made = client.agents.create(name="Slow", model="openai/gpt-4o-mini", memory_blocks=[])
    yield made
    client.agents.delete(made.id)
