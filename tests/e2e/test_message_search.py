"""Messages are found again with the official client, by their words at once and by their meaning a moment later."""

from typing import Any

from tests.e2e.stack import Stack
from tests.polling import wait_until


def test_messages_are_found_again(stack: Stack) -> None:
    client = stack.client()
    ada, bob = (client.agents.create(model="loci/demo", embedding="loci/hash") for _ in range(2))
    client.agents.messages.create(ada.id, input="The lighthouse keeper grows heliotropes.")
    conversation = client.conversations.create(agent_id=ada.id)
    list(client.conversations.messages.create(conversation.id, input="A lighthouse stands on the cliff."))
    client.agents.messages.create(bob.id, input="Bob never saw a lighthouse.")

    def found(**options: Any) -> list[tuple[str, str, str | None]]:
        results = client.messages.search(query="lighthouse keepers", **options)
        said = [one for one in results if one.message_type == "user_message"]
        return [(one.content, one.agent_id, one.conversation_id) for one in said]

    first = ("The lighthouse keeper grows heliotropes.", ada.id, None)
    second = ("A lighthouse stands on the cliff.", ada.id, conversation.id)
    by_words = found(search_mode="fts")
    assert by_words[0] == first
    assert {text for text, _, _ in by_words} >= {second[0], "Bob never saw a lighthouse."}
    assert found(search_mode="fts", conversation_id=conversation.id) == [second]
    assert {agent_id for _, agent_id, _ in found(search_mode="fts", agent_id=bob.id)} == {bob.id}
    # Vectors are made in the background.
    wait_until(lambda: first in found(search_mode="vector", agent_id=ada.id), pause=0.25)
    assert found(search_mode="vector", agent_id=ada.id, limit=3)[0] == first
    assert found(agent_id=ada.id)[0] == first
    assert found(agent_id=ada.id, end_date="2020-01-01T00:00:00Z") == []
