"""Models' own templates: rendered in a child that may do little, named by operators and tenants."""

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import orjson
import pytest

from services.llm_gateway.core.errors import LlmBadRequest, LlmServerError, ProviderInvalid
from services.llm_gateway.vendors.text import templates
from services.llm_gateway.vendors.text.templates import (
    BuiltInFormatter,
    TemplateChild,
    TemplateChildLate,
    TemplateFailure,
    TemplateFormatter,
    formatter_of,
)
from tests.unit.llm_gateway.builders import assistant, call, request, results, system, tool, user

PLAIN = "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}[assistant]"
TOOLS = PLAIN + "{% if tools %}{{ tools | tojson }}<tool_call>{% endif %}"


@pytest.fixture
async def child() -> AsyncIterator[TemplateChild]:
    made = TemplateChild(seconds=30.0)
    yield made
    await made.close()


async def test_a_template_is_rendered_as_models_expect_it(child: TemplateChild) -> None:
    source = "{%- for m in messages %}\n    {{- m.content | tojson }}\n{% endfor %}{{ tools }}{% break_ %}"
    with pytest.raises(TemplateFailure, match="TemplateSyntaxError"):
        await child.render(source, {})
    # Blocks take no lines, and text for a model is not escaped for a browser.
    source = "{% for m in messages %}\n    {% if loop.last %}{{ m.content | tojson }}{% endif %}\n{% endfor %}end"
    messages = [{"role": "user", "content": "a"}, {"role": "user", "content": '<é> "x"'}]
    assert await child.render(source, {"messages": messages}) == '"<é> \\"x\\""end'


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("{{ ''.__class__.__mro__ }}", "SecurityError"),
        ("{{ messages.append(1) }}", "SecurityError"),
        ("{{ 'a' * 10 ** 9 }}", "memory"),
        ("{{ '%999999999d' | format(1) }}", "memory"),
        ("{% for i in range(99999) %}{{ 'x' * 999 }}{% endfor %}", "more than 16,777,216 characters"),
        ("{{ raise_exception('roles must alternate') }}", "roles must alternate"),
        ("{{ nothing.at.all }}", "UndefinedError"),
        # Code for the encoder to call, with objects that the sandbox does not judge.
        ("{{ cycler | tojson(default=raise_exception) }}", "unexpected keyword argument"),
        ("{{ messages | tojson(cls=joiner) }}", "unexpected keyword argument"),
        ("{{ messages | tojson(indent=10 ** 9) }}", "indent is a number up to 32"),
        ("{{ messages | tojson(indent='-' * 9999) }}", "indent is a number up to 32"),
        ("{{ messages | tojson(separators=(1, 2)) }}", "separators are two texts"),
    ],
)
async def test_what_a_template_may_not(child: TemplateChild, source: str, problem: str) -> None:
    with pytest.raises(TemplateFailure, match=problem):
        await child.render(source, {"messages": []})
    assert await child.render("{{ 'still here' }}", {}) == "still here"


async def test_what_models_templates_say_of_json(child: TemplateChild) -> None:
    source = "{{ x | tojson(indent=1, sort_keys=true, separators=(', ', ' : '), ensure_ascii=true) }}"
    assert await child.render(source, {"x": {"b": 1, "a": "é"}}) == '{\n "a" : "\\u00e9", \n "b" : 1\n}'


async def test_a_template_without_end_is_stopped_and_the_next_is_rendered() -> None:
    child = TemplateChild(seconds=0.5)
    endless = "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}"
    with pytest.raises(TemplateFailure, match=r"longer than 0\.5 s"):
        await child.render(endless, {})
    child._seconds = 30.0  # what follows has no end to be stopped
    assert await child.render("{{ 1 + 1 }}", {}) == "2"
    await child.close()


async def test_the_start_of_the_process_is_no_part_of_the_rendering(monkeypatch: pytest.MonkeyPatch) -> None:
    *python, program = templates._COMMAND
    monkeypatch.setattr(templates, "_COMMAND", (*python, f"import time; time.sleep(2)\n{program}"))
    child = TemplateChild(seconds=1.5)
    assert await child.render("{{ 1 + 1 }}", {}) == "2"
    await child.close()


async def test_a_process_that_does_not_start_is_not_the_requests_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(templates, "_COMMAND", (sys.executable, "-S", "-c", "import time; time.sleep(60)"))
    child = TemplateChild(start_seconds=0.1)
    with pytest.raises(TemplateChildLate, match=r"did not start within 0\.1 s"):
        await child.render("{{ 1 }}", {})
    assert child._child is None
    formatter = formatter_of(PLAIN, "x", may_read=False)
    assert isinstance(formatter, TemplateFormatter)
    formatter._child = child
    with pytest.raises(LlmServerError, match="was not made: the process that renders it did not start") as caught:
        await formatter.prompt(request(user("u")))
    assert caught.value.retryable


async def test_a_process_that_dies_as_it_starts_is_tried_once_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(templates, "_COMMAND", (sys.executable, "-S", "-c", "pass"))
    with pytest.raises(TemplateFailure, match="it fails, or needs too much memory"):
        await TemplateChild().render("{{ 1 }}", {})


async def test_a_child_that_went_away_is_replaced_and_a_caller_that_left_confuses_nobody(child: TemplateChild) -> None:
    assert await child.render("{{ 'one' }}", {}) == "one"
    running = child._child
    assert running is not None
    await running.end()
    assert await child.render("{{ 'two' }}", {}) == "two"
    slow = asyncio.create_task(
        child.render("{% for i in range(99999) %}{% for j in range(999) %}{% endfor %}{% endfor %}", {})
    )
    await asyncio.sleep(0.05)  # whether it was asked by then or not
    slow.cancel()
    await asyncio.gather(slow, return_exceptions=True)
    assert await child.render("{{ 'three' }}", {}) == "three"


async def test_tools_go_to_a_template_that_knows_them_and_else_are_told_in_words() -> None:
    history = (system("S"), user("u"), assistant(call("c", "dice", n=1)), results(("c", "4")))
    asked = request(*history, tools=[tool("dice", n="integer")])
    knowing = formatter_of(TOOLS, "x", may_read=False)
    text = (await knowing.prompt(asked)).text
    assert text.startswith("[system]S[user]u[assistant][tool]4[assistant][{")
    telling = formatter_of(PLAIN, "x", may_read=False)
    text = (await telling.prompt(asked)).text
    assert "[system]S\n\nThese are the tools" in text
    assert '<tool_call>\n{"name":"dice","arguments":{"n":1}}\n</tool_call>' in text
    await knowing.close()
    await telling.close()


async def test_what_cannot_be_rendered_is_the_requests_fault_and_says_where_it_is_set() -> None:
    formatter = formatter_of("{{ raise_exception('no system, please') }}", "prompt_formatter", may_read=False)
    with pytest.raises(LlmBadRequest, match=r"prompt_formatter cannot be rendered.*no system, please"):
        await formatter.prompt(request(user("u")))
    await formatter.close()


async def test_a_file_is_read_for_the_operator_alone(tmp_path: Path) -> None:
    config = {"chat_template": "{{ bos_token }}" + PLAIN + "{{ eos_token }}", "bos_token": {"content": "<s>"}}
    file = tmp_path / "tokenizer_config.json"
    file.write_bytes(orjson.dumps({**config, "eos_token": "</s>"}))
    formatter = formatter_of(str(file), "x", may_read=True)
    prompt = await formatter.prompt(request(user("hello")))
    assert (prompt.begin, prompt.text) == ("<s>", "[user]hello[assistant]</s>")
    await formatter.close()
    with pytest.raises(ProviderInvalid, match="is no template; expected one of chatml, gemma, llama3, mistral"):
        formatter_of(str(file), "x", may_read=False)
    with pytest.raises(ProviderInvalid, match="cannot be read"):
        formatter_of(str(tmp_path / "absent"), "x", may_read=True)


def test_names_and_what_is_neither() -> None:
    assert isinstance(formatter_of("llama3", "x", may_read=False), BuiltInFormatter)
    with pytest.raises(ProviderInvalid, match="names eos_token without saying it"):
        formatter_of("{{ messages }}{{ eos_token }}", "x", may_read=False)
    with pytest.raises(ProviderInvalid, match="more than 262,144 characters"):
        formatter_of("{{ 1 }}" + "x" * 300_000, "x", may_read=False)
