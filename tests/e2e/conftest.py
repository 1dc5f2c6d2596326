"""Whole stacks for the end-to-end tests.

`stack` is one Loci for the session, with fake OpenAI and Anthropic providers behind it; `openai_fake` and
`anthropic_fake` are those providers, reset for each test. Tests that kill or restart use `own_stack`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.e2e.helpers import skip_without_sandbox
from tests.e2e.stack import Stack, running
from tests.fakes.anthropic_server import AnthropicServer
from tests.fakes.openai_server import OpenAIServer


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skips what runs tool code where nothing can."""
    if item.get_closest_marker("sandbox"):
        skip_without_sandbox()


@dataclass
class Providers:
    """The fake providers of a stack."""

    openai: OpenAIServer
    anthropic: AnthropicServer

    def environment(self) -> dict[str, str]:
        """Returns the settings that point a stack at them."""
        return {
            "OPENAI_API_KEY": "sk-test",
            "OPENAI_BASE_URL": self.openai.base_url,
            "ANTHROPIC_API_KEY": "sk-ant-test",
            "ANTHROPIC_BASE_URL": self.anthropic.base_url,
        }


@pytest.fixture(scope="session")
def providers() -> Iterator[Providers]:
    """Both fakes, in threads of this process."""
    with OpenAIServer().in_thread() as openai, AnthropicServer().in_thread() as anthropic:
        yield Providers(openai, anthropic)


@pytest.fixture(scope="session")
def stack(providers: Providers) -> Iterator[Stack]:
    """The session's Loci."""
    with running(providers.environment()) as started:
        yield started


@pytest.fixture(scope="module")
def client(stack: Stack) -> Any:
    """The official client of the session's Loci."""
    return stack.client()


@pytest.fixture(scope="session")
def short_stack(providers: Providers) -> Iterator[Stack]:
    """A Loci that loses its patience with providers and tools within seconds."""
    impatience = {
        "LOCI_LLM_STALL_SECONDS": "2",
        "LOCI_LLM_REPLY_SECONDS": "2",
        "LOCI_LLM_RETRIES": "1",
        "LOCI_TOOL_TIMEOUT": "3",
    }
    with running(providers.environment() | impatience) as started:
        yield started


@pytest.fixture(scope="session")
def open_stack(providers: Providers) -> Iterator[Stack]:
    """A Loci that may speak to this machine, for what calls every method and every route."""
    with running(providers.environment() | {"LOCI_ALLOW_PRIVATE_URLS": "1"}) as started:
        yield started


@pytest.fixture(scope="session")
def guarded_stack(providers: Providers) -> Iterator[Stack]:
    """A Loci behind the password `geheim`, which no tool knows."""
    with running(providers.environment() | {"LETTA_SERVER_PASSWORD": "geheim"}) as started:
        yield started


@pytest.fixture(scope="module")
def own_stack(providers: Providers) -> Iterator[Stack]:
    """A Loci of the module's own, to kill and restart."""
    with running(providers.environment()) as started:
        yield started


@pytest.fixture
def openai_fake(providers: Providers) -> Iterator[OpenAIServer]:
    """The fake OpenAI, without a script."""
    providers.openai.reset()
    yield providers.openai
    providers.openai.reset()


@pytest.fixture
def anthropic_fake(providers: Providers) -> Iterator[AnthropicServer]:
    """The fake Anthropic, without a script."""
    providers.anthropic.reset()
    yield providers.anthropic
    providers.anthropic.reset()
