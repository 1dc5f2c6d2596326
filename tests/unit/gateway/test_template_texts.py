"""Templates filled in: what stands in the place of variables, and how much of it."""

import time
from typing import Any

import pytest

from gateway.agent_files.reader import of_document
from gateway.agent_files.schema import AgentFile
from gateway.agent_files.templates import MOST_INSERTED, TemplateValues, fill_template
from services.common.errors import InvalidArgument


def template(system: str, value: str) -> AgentFile:
    agent: dict[str, Any] = {"id": "agent-0", "name": "Ada", "system": system, "block_ids": ["block-0"]}
    document = {"agents": [agent], "blocks": [{"id": "block-0", "label": "human", "value": value}]}
    return of_document(document)


def test_variables_are_replaced_and_others_stay() -> None:
    file = fill_template(template("{{ who }} {{who}}", "{{who}} {{x}}"), TemplateValues(variables={"who": "Bob"}))
    assert (file.agents[0].system, file.blocks[0].value) == ("Bob Bob", "Bob {{x}}")


@pytest.mark.parametrize(("system", "value"), [("{{a}}" * 5, ""), ("", "{{a}}" * 5), ("{{a}}" * 2, "{{a}}" * 3)])
def test_a_few_bytes_do_not_become_gigabytes(system: str, value: str) -> None:
    whole = TemplateValues(variables={"a": "x" * (MOST_INSERTED // 5)})
    fill_template(template(system, value), whole)
    began = time.process_time()
    with pytest.raises(InvalidArgument, match="memory_variables put more than"):
        fill_template(template(system * 10_000, value * 10_000), whole)
    assert time.process_time() - began < 5
