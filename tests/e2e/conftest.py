"""Whole stacks for the end-to-end tests.

`stack` is one Loci for all of them, with fake OpenAI and Anthropic providers behind it; `openai_fake` and
`anthropic_fake` are those providers, reset for each test. What needs a setting uses `open_stack`, where everything is
on, or `guarded_stack`, which has a password; who kills or restarts uses `own_stack`. Each starts where it is asked for
first, and ends with the last test of this folder.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from services.tool_runner.egress.certificates import Authority
from tests.e2e.collector import Collector, collecting
from tests.e2e.database import end_runs
from tests.e2e.helpers import skip_without_sandbox
from tests.e2e.stack import Stack, running
from tests.fakes.anthropic_server import AnthropicServer
from tests.fakes.openai_server import OpenAIServer

PASSWORD = "geheim"


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


@pytest.fixture(scope="package")
def providers() -> Iterator[Providers]:
    """Both fakes, in threads of this process."""
    with OpenAIServer().in_thread() as openai, AnthropicServer().in_thread() as anthropic:
        yield Providers(openai, anthropic)


_SHARED: list[Stack] = []


@contextmanager
def _shared(environment: dict[str, str]) -> Iterator[Stack]:
    with running(environment) as started:
        _SHARED.append(started)
        yield started
        _SHARED.remove(started)


@pytest.fixture(scope="module", autouse=True)
def nothing_goes_on() -> Iterator[None]:
    """Ends a module's runs with it: one that goes on would take a reply from the script of the next."""
    yield
    for each in _SHARED:
        end_runs(each)


@pytest.fixture(scope="package")
def stack(providers: Providers) -> Iterator[Stack]:
    """A Loci with no other settings than its providers."""
    with _shared(providers.environment()) as started:
        yield started


@pytest.fixture(scope="module")
def client(stack: Stack) -> Any:
    """The official client of the plain Loci."""
    return stack.client()


@pytest.fixture(scope="module")
def short_stack(providers: Providers) -> Iterator[Stack]:
    """A Loci that loses its patience with providers and tools within seconds; what does not hang needs far less."""
    impatience = {
        "LOCI_LLM_STALL_SECONDS": "5",
        "LOCI_LLM_REPLY_SECONDS": "5",
        "LOCI_LLM_RETRIES": "0",
        "LOCI_TOOL_TIMEOUT": "6",
    }
    with running(providers.environment() | impatience) as started:
        yield started


@pytest.fixture(scope="package")
def collector() -> Iterator[Collector]:
    """What receives the spans of `open_stack`."""
    with collecting() as receiving:
        yield receiving


@pytest.fixture(scope="package")
def authority() -> Authority:
    """An authority of the tests' own, which `open_stack` trusts."""
    return Authority()


@pytest.fixture(scope="package")
def open_stack(
    providers: Providers, collector: Collector, authority: Authority, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stack]:
    """A Loci with everything on: it may speak to this machine, runs MCP servers, sends spans and knows prices.

    A million tokens of gpt-4o-mini cost 2 dollars as input, 10 as output.
    """
    certificate = tmp_path_factory.mktemp("authority") / "authority.pem"
    certificate.write_text(authority.pem)
    more = {
        "LOCI_ALLOW_PRIVATE_URLS": "1",
        "LOCI_MCP_STDIO": "true",
        "LOCI_PRICES": '{"openai/gpt-4o-mini": {"input": 2, "output": 10}}',
        "SSL_CERT_FILE": str(certificate),
    }
    with _shared(providers.environment() | collector.environment() | more) as started:
        yield started


@pytest.fixture(scope="package")
def guarded_stack(providers: Providers) -> Iterator[Stack]:
    """A Loci behind PASSWORD, which no tool knows; it remembers keys for a second."""
    more = {
        "LETTA_SERVER_PASSWORD": PASSWORD,
        "LOCI_KEY_CACHE_SECONDS": "1",
        "LOCI_CORS_ORIGINS": "https://app.test",
        "LOCI_ALLOW_PRIVATE_PROVIDERS": "true",
    }
    with _shared(providers.environment() | more) as started:
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
