"""The suite of `make test-live` against vendors on this machine, and that nothing else ever runs it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import orjson

from tests.fakes import anthropic_wire, openai_wire
from tests.fakes.anthropic_server import AnthropicServer
from tests.fakes.http import Request
from tests.fakes.openai_server import OpenAIServer
from tests.fakes.script import DEFAULT_REPLY, Reply, RequestView, ToolCall
from tests.fakes.server import HttpReply

ROOT = Path(__file__).parents[3]
KEY = "sk-of-a-live-vendor"
NUMBERS = "one, two, three, twenty, thirty"


class StrictOpenAI(OpenAIServer):
    """It knows its keys, too."""

    def respond(self, request: Request, body: Any) -> tuple[Reply, HttpReply]:
        if request.headers.get("authorization") != f"Bearer {KEY}":
            return DEFAULT_REPLY, openai_wire.error("authentication")
        return super().respond(request, body)


class StrictAnthropic(AnthropicServer):
    """It knows its keys, too."""

    def respond(self, request: Request, body: Any) -> tuple[Reply, HttpReply]:
        if request.headers.get("x-api-key") != KEY:
            return DEFAULT_REPLY, anthropic_wire.error("authentication")
        return super().respond(request, body)


def model(seen: RequestView) -> Reply:
    """Returns a sensible model's answers to the suite."""
    asked = seen.question
    dice, coin = ToolCall("roll_dice", {"num_sides": 20}), ToolCall("toss_coin", {"times": 2})
    if "one die" in asked:
        return Reply(text="It is 17.") if seen.step else Reply(calls=(dice,))
    if "both tools" in asked:
        return Reply(text="Done.") if seen.step else Reply(calls=(dice, coin))
    if "colour" in asked:
        return Reply(text="Red." if b"image/png" in orjson.dumps(seen.body) else "I see nothing.")
    if "larger" in asked:
        return Reply(text="19 * 21 = 399", reasoning="391 and 399")
    if "their sum" in asked:
        return Reply(text="790")
    if "hundred" in asked:
        return Reply(text=NUMBERS * 9, delta_delay=0.01, finish="length" if "a hundred" in asked else None)
    return Reply(text=NUMBERS if "thirty" in asked else "hello")


def suite(**environment: str) -> str:
    """Returns the output of `make test-live`."""
    plain = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "TMPDIR")}
    command = [sys.executable, "-m", "pytest", "tests/live", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(
        command, cwd=ROOT, env=plain | environment, capture_output=True, text=True, timeout=100, check=False
    )
    return done.stdout + done.stderr


def test_the_vendors_whose_keys_are_there_are_asked_and_the_others_named() -> None:
    with StrictOpenAI().in_thread() as openai, StrictAnthropic().in_thread() as anthropic:
        openai.answer(model)
        anthropic.answer(model)
        told = suite(
            LOCI_LIVE="1",
            OPENAI_API_KEY=KEY,
            OPENAI_BASE_URL=openai.base_url,
            ANTHROPIC_API_KEY=KEY,
            ANTHROPIC_BASE_URL=anthropic.base_url,
            LOCI_LIVE_MODELS="openai=gpt-4o-mini",
        )
        asked = {body["model"] for fake in (openai, anthropic) for body in fake.bodies() if body}
    assert "failed" not in told, told
    assert "error" not in told.splitlines()[-1], told
    # 14 cases for each; one cannot think, the other spends a short limit on thoughts.
    [passed] = re.findall(r"(\d+) passed", told)
    assert int(passed) == 2 * 14 - 2, told
    assert "openai/gpt-4o-mini is not known to think" in told
    assert "14  groq is not asked: GROQ_API_KEY or GROQ_BASE_URL is not set" in told
    assert asked == {"gpt-4o-mini", "claude-haiku-4-5", "no-such-model-of-anybody"}


def test_nothing_else_runs_it() -> None:
    told = suite(OPENAI_API_KEY=KEY, OPENAI_BASE_URL="http://127.0.0.1:9")
    assert "no tests ran" in told
