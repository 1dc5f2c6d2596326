"""Requests that schemathesis makes out of the OpenAPI document, right ones and wrong ones, against a whole stack.

No answer may be a 500, have a status or a type that the document does not know, or a body of another shape.
"""

from collections.abc import Mapping
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.e2e.sdk_methods.world import World
from tests.gateway_document import openapi

CHECKS = [status_code_conformance, content_type_conformance, response_schema_conformance]
EXAMPLES = 6
SECONDS = 60
SCHEMA = schemathesis.openapi.from_dict(openapi())
_FOUND: list[Any] = [one.ok() for one in SCHEMA.get_all_operations()]  # type: ignore[union-attr] # raises what is wrong
OPERATIONS = {one.label: one for one in _FOUND}
BOUNDED = settings(
    max_examples=EXAMPLES,
    database=None,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.parametrize("label", OPERATIONS)
def test_generated_requests(label: str, world: World, there: Mapping[str, str]) -> None:
    operation = OPERATIONS[label]
    # What is deleted would be missing to the others.
    known = {} if operation.method.upper() == "DELETE" else there
    cases: Any = st.one_of(
        operation.as_strategy(generation_mode=GenerationMode.POSITIVE),
        operation.as_strategy(generation_mode=GenerationMode.NEGATIVE),
    )

    @seed(1)
    @BOUNDED
    @given(cases, st.booleans())
    def requests(case: Any, is_there: bool) -> None:
        if is_there:
            case.path_parameters.update({k: known[k] for k in known.keys() & set(case.path_parameters or ())})
        response = case.call(base_url=world.url, timeout=SECONDS)
        # The other 5xx are documented: a provider that fails, what is not there yet.
        assert response.status_code != 500, (case.as_curl_command(), response.text)
        case.validate_response(response, checks=CHECKS)

    requests()
