"""The cost of turns and the budget of a tenant, through the REST API of a whole Loci."""

from typing import Any

import httpx
import pytest
from letta_client import APIStatusError

from tests.e2e.stack import Stack
from tests.fakes.openai_server import OpenAIServer
from tests.fakes.script import Reply, Usage

HANDLE = "openai/gpt-4o-mini"


@pytest.fixture
def spender(open_stack: Stack) -> dict[str, str]:
    """The headers of an admin of a tenant of the test's own, whose spending is nobody else's."""
    with httpx.Client(base_url=open_stack.url, timeout=30) as operator:
        tenant = operator.post("/v1/orgs/", json={"name": "Spender"}).raise_for_status().json()
        key = {"name": "spender", "role": "admin", "user_id": tenant["id"].replace("org-", "user-")}
        made = operator.post("/v1/api-keys/", json=key).raise_for_status().json()
    return {"authorization": f"Bearer {made['key']}"}


def test_a_turn_is_told_with_its_cost_and_a_budget_stops_the_next(
    open_stack: Stack, spender: dict[str, str], openai_fake: OpenAIServer
) -> None:
    client = open_stack.client(default_headers=spender)
    openai_fake.reply(Reply(text="One.", usage=Usage(1_000, 100)), Reply(text="Two.", usage=Usage(2_000, 200)))
    agent: Any = client.agents.create(model=HANDLE, memory_blocks=[])
    with httpx.Client(base_url=open_stack.url, headers=spender, timeout=30) as http:
        for _ in range(2):
            client.agents.messages.create(agent.id, input="hi")
        run = client.runs.list(agent_id=agent.id).items[0]
        told = http.get(f"/v1/runs/{run.id}/usage").json()
        assert (told["total_tokens"], told["cost_usd"], told["requests"]) == (2_200, 0.006, 1)
        assert [row["model"] for row in told["by_model"]] == [HANDLE]
        assert client.runs.usage.retrieve(run.id).total_tokens == 2_200

        query: dict[str, Any] = {"group_by": ["agent", "model"], "agent_id": agent.id, "kind": "chat"}
        report = http.get("/v1/usage", params=query).json()
        [row] = report["rows"]
        assert row["group"] == {"agent": agent.id, "model": HANDLE}
        assert (row["requests"], row["total_tokens"], row["cost_usd"]) == (2, 3_300, 0.009)
        assert report["totals"] | {"group": row["group"]} == row

        state = http.put("/v1/budgets/month", json={"usd": 0.009}).json()
        assert (state["limits"], state["operators"]) == ({"usd": 0.009, "tokens": None, "requests": None}, False)
        assert state["spent"]["usd"] == 0.009
        with pytest.raises(APIStatusError) as caught:
            client.agents.messages.create(agent.id, input="hi")
        assert caught.value.status_code == 402
        error: Any = caught.value.body
        assert error["error"]["type"] == "llm_insufficient_credits"
        assert "your budget of $0.009 in one month" in error["error"]["message"]
        refused = client.runs.list(agent_id=agent.id).items[0]
        assert (refused.status, refused.stop_reason) == ("failed", "insufficient_credits")
        # What costs nothing goes on, and so does everything when the budget is gone.
        free = client.agents.create(model="loci/demo", memory_blocks=[])
        client.agents.messages.create(free.id, input="hi")
        assert http.delete("/v1/budgets/month").json() is None
        assert http.get("/v1/budgets").json() == []
        client.agents.messages.create(agent.id, input="hi")
