"""Attacks by requests that are handed on: whole bodies of programs within the operator's network."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from services.llm_gateway.core.errors import ForwardNotPermitted
from services.llm_gateway.core.provider_config import ProviderConfig
from services.llm_gateway.forwards.addresses import Forward, check_account

INSIDE = "http://vault.internal:8200/v1/secret"


def provider(**fields: Any) -> ProviderConfig:
    given: dict[str, Any] = {
        "base_url": INSIDE,
        "is_vendor": False,
        "allow_private": True,
        "organization_id": UUID(int=7),
    }
    return ProviderConfig("mine", "anthropic", api_key="k", key_setting="k", url_setting="u", **given | fields)


def asked(method: str, path: str, own_key: str = "") -> Forward:
    return Forward("anthropic", method, path, "", {}, b"", own_key)


@pytest.mark.parametrize("own_key", ["", "sk-ant-mine"])
@pytest.mark.parametrize(
    ("method", "path"), [("GET", "data/root"), ("GET", "v1/files"), ("PUT", "v1/messages"), ("DELETE", "v1/models/x")]
)
def test_a_tenant_reads_no_other_program_of_the_operators_network(method: str, path: str, own_key: str) -> None:
    with pytest.raises(ForwardNotPermitted, match="open internet"):
        check_account(asked(method, path, own_key), provider())


@pytest.mark.parametrize(("method", "path"), [("POST", "v1/messages"), ("GET", "v1/models"), ("GET", "v1/models/x")])
def test_a_model_within_it_is_asked(method: str, path: str) -> None:
    check_account(asked(method, path), provider())


@pytest.mark.parametrize("fields", [{"is_vendor": True}, {"allow_private": False}])
def test_the_open_internet_is_the_tenants_own_affair(fields: dict[str, Any]) -> None:
    check_account(asked("GET", "v1/files"), provider(**fields))


def test_the_operators_account_is_nobodys() -> None:
    operators = provider(organization_id=None)
    with pytest.raises(ForwardNotPermitted, match="others"):
        check_account(asked("GET", "v1/files"), operators)
    check_account(asked("GET", "v1/files", "sk-ant-mine"), operators)
