"""Rules for environment variables and sandbox settings."""

from __future__ import annotations

import json

import pytest

from loci.tool.v1 import sandbox_config_service_pb2 as wire
from services.common.core.refusals import Refused
from services.tool_runner.sandbox_configs.convert import drafts
from services.tool_runner.sandbox_configs.model import VariableSettings
from services.tool_runner.sandbox_configs.rules import configs, variables


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("1A", "x", "letters, digits"),
        ("A-B", "x", "letters, digits"),
        ("É", "x", "letters, digits"),
        ("A\n", "x", "letters, digits"),
        ("", "x", "letters, digits"),
        ("A" * 256, "x", "1 to 255"),
        *((name, "x", "set by Loci") for name in ("PATH", "HOME", "LOCI_X", "LD_PRELOAD", "no_proxy", "ALL_PROXY")),
        ("A", "s3cret\0", "NUL"),
        ("A", "é" * 32_769, "65538 bytes"),
    ],
)
def test_what_cannot_be_a_variable(name: str, value: str, says: str) -> None:
    with pytest.raises(Refused, match=says) as caught:
        variables.check_all([VariableSettings(name, value)])
    assert caught.value.reason == "ENVIRONMENT_INVALID"
    assert "s3cret" not in caught.value.message


def test_what_can_be_a_variable() -> None:
    variables.check_all(
        [
            VariableSettings("_", ""),
            VariableSettings("A" * 255, "x" * 65_536),
            VariableSettings("LETTA_API_KEY", "é\n"),
            VariableSettings("ENV", "x"),
        ]
    )


def test_there_are_not_too_many_and_none_twice() -> None:
    with pytest.raises(Refused, match="at most 256"):
        variables.check_all([VariableSettings(f"A{number}", "") for number in range(257)])
    with pytest.raises(Refused, match="given twice"):
        variables.check_all([VariableSettings("A", "1"), VariableSettings("A", "2")])
    with pytest.raises(Refused, match="all together"):
        variables.check_all([VariableSettings(f"A{number}", "x" * 65_000) for number in range(5)])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[]", "JSON object"),
        ("{", "not JSON"),
        ('{"timeout": NaN}', "not JSON"),
        ("[" * 100_000, "65536 bytes"),
        ("[" * 60_000, "not JSON"),
        ('{"timeout": true}', "config.timeout"),
        ('{"timeout": 0}', "config.timeout"),
        ('{"use_venv": 1}', "config.use_venv"),
        ('{"pip_requirements": ["six"]}', "config.pip_requirements"),
        ('{"npm_requirements": [{"name": "left-pad", "version": 1}]}', "config.npm_requirements"),
        ('{"pip_requirements": [{"name": "x @ https://example.com/x.whl"}]}', "not the name of a package"),
        ('{"pip_requirements": {}}', "config.pip_requirements"),
    ],
)
def test_what_cannot_be_sandbox_settings(text: str, says: str) -> None:
    with pytest.raises(Refused, match=says) as caught:
        configs.check_config(text)
    assert caught.value.reason == "SANDBOX_CONFIG_INVALID"


def test_settings_that_mean_the_same_have_one_fingerprint() -> None:
    settings = {"use_venv": True, "pip_requirements": [{"name": "six", "version": None}], "unknown": [1]}
    text = configs.check_config(json.dumps(settings))
    found = configs.effective("local", text)
    assert found.pip_requirements == '[{"name":"six","version":null}]'
    same = dict(reversed(settings.items())) | {"template": None}
    assert configs.effective("local", json.dumps(same)) == found
    others = {configs.effective(*given).fingerprint for given in (("e2b", text), ("local", ""), ("e2b", ""))}
    assert len(others - {found.fingerprint}) == 3
    assert configs.effective("local", "") == configs.effective("local", '{"pip_requirements": null}')


def test_a_value_is_not_changed_on_its_way() -> None:
    settings = drafts.draft(wire.Variable(key="A\0", value="s3cret\0", description="d\0")).values
    assert settings == VariableSettings("A", "s3cret\0", "d")
    with pytest.raises(Refused, match="description must have at most 10,000 characters") as refused:
        drafts.draft(wire.Variable(key="A", value="x", description="d" * 10_001))
    assert refused.value.reason == "ENVIRONMENT_INVALID"
