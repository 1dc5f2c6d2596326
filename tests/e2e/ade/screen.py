"""One tab with the page, and what tests do and see in it."""

from pathlib import Path
from typing import Any

from playwright.sync_api import CDPSession, Locator, Page, expect

from tests.e2e.stack import ROOT, Stack

SHOTS = Path(__file__).parent / "screenshots"
_AXE = ROOT / "ade" / "node_modules" / "axe-core" / "axe.min.js"
# The frame itself, what observers of sizes asked for, and that drawn.
_DRAWN = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => requestAnimationFrame(done))))"
# Wide: two workers and whole stacks share two cores.
MILLISECONDS = 20_000
expect.set_options(timeout=MILLISECONDS)


class Screen:
    """A tab. `problems`: what the console said, and addresses asked for that are not ours."""

    def __init__(self, page: Page, stack: Stack, url: str = "") -> None:
        self.page = page
        self.url = url or stack.url
        self.problems: list[str] = []
        self._network: CDPSession | None = None
        page.set_default_timeout(MILLISECONDS)
        page.on("console", self._hear)
        page.on("pageerror", lambda error: self.problems.append(f"error: {error}"))
        page.on("request", self._see)

    def open(self, path: str = "/agents") -> "Screen":
        """Goes to a route of the page."""
        self.page.goto(f"{self.url}/#{path}")
        return self

    def check_silence(self) -> None:
        """Raises AssertionError where the console said something, or another origin was asked."""
        assert not self.problems, self.problems

    def send(self, text: str) -> None:
        """Writes a message and presses Enter."""
        self.composer.fill(text)
        self.composer.press("Enter")

    @property
    def composer(self) -> Locator:
        return self.page.get_by_label("Message", exact=True)

    def parts(self, kind: str) -> Locator:
        """Returns the parts of a kind: user, assistant, thought, tool, approval."""
        return self.page.locator(f"[data-kind={kind}]")

    @property
    def turn(self) -> Locator:
        """Where the turn that goes on stands."""
        return self.page.locator(".turn-line")

    def wait_for_end(self) -> None:
        """Waits until no turn goes on."""
        expect(self.turn).to_have_count(0)

    def upload(self, *paths: Path) -> None:
        """Chooses files to send, as a person does in the dialogue."""
        with self.page.expect_file_chooser() as chooser:
            self.page.get_by_role("button", name="Upload files").click()
        chooser.value.set_files(paths)

    def throttle(self, bytes_in_a_second: int | None) -> None:
        """Makes what the browser sends slow; None: no longer."""
        if self._network is None:
            self._network = self.page.context.new_cdp_session(self.page)
            self._network.send("Network.enable")
        conditions = {"offline": False, "latency": 0, "downloadThroughput": -1}
        self._network.send(
            "Network.emulateNetworkConditions", conditions | {"uploadThroughput": bytes_in_a_second or -1}
        )

    def shoot(self, name: str) -> None:
        """Takes pictures, wide and narrow, light and dark, and looks for faults of accessibility in each."""
        SHOTS.mkdir(exist_ok=True)
        expect(self.page.locator("[aria-busy=true]")).to_have_count(0)
        for width, height in ((1280, 800), (390, 844)):
            self.page.set_viewport_size({"width": width, "height": height})
            for scheme in ("light", "dark"):
                self.page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
                self.page.evaluate(_DRAWN)
                self.page.screenshot(path=SHOTS / f"{name}-{width}-{scheme}.png")
                faults = self.faults()
                assert not faults, f"{name} at {width}, {scheme}: {faults}"
                assert self.overflow() <= 0, f"{name} at {width} is cut off at the right"
        self.page.set_viewport_size({"width": 1280, "height": 800})
        self.page.emulate_media(color_scheme="light", reduced_motion="reduce")

    def faults(self) -> list[str]:
        """Returns the serious faults that axe finds."""
        self.page.evaluate(_AXE.read_text())
        found: Any = self.page.evaluate("axe.run(document, {resultTypes: ['violations']})")
        return [
            f"{each['id']}: {[node['html'][:120] for node in each['nodes']][:3]}"
            for each in found["violations"]
            if each["impact"] in ("serious", "critical")
        ]

    def overflow(self) -> int:
        """Returns by how many pixels the page is wider than the window."""
        pixels: int = self.page.evaluate("document.documentElement.scrollWidth - innerWidth")
        return pixels

    def _hear(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.problems.append(f"{message.type}: {message.text}")

    def _see(self, request: Any) -> None:
        if not request.url.startswith((self.url, "blob:", "data:")):
            self.problems.append(f"asked {request.url}")
