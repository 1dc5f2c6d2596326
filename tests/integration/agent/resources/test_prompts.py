"""Stored system prompts: what the model was last given is what clients see, and what rewrites it."""

from loci.agent.v1 import message_service_pb2 as message_wire
from loci.agent.v1.agent_service_pb2 import ResetMessagesRequest
from loci.agent.v1.conversation_service_pb2 import (
    CreateConversationRequest,
    ForkConversationRequest,
    RecompileConversationRequest,
)
from loci.common.v1.page_pb2 import ORDER_ASCENDING, PageRequest
from services.common.ids import from_public
from tests.integration.agent.admin_world import AdminWorld, block


async def _prompt(world: AdminWorld, agent_id: str, conversation_id: str = "") -> str:
    page = PageRequest(page_size=1, order=ORDER_ASCENDING)
    request = message_wire.ListMessagesRequest(
        agent_id=agent_id, conversation_id=conversation_id or agent_id, page=page
    )
    listed = await world.call(world.messages.ListMessages, request)
    text: str = listed.messages[0].system_message.content
    return text


async def _recompile(world: AdminWorld, agent_id: str, conversation_id: str = "", *, dry_run: bool = False) -> str:
    request = RecompileConversationRequest(agent_id=agent_id, conversation_id=conversation_id, dry_run=dry_run)
    text: str = (await world.call(world.conversations.RecompileConversation, request)).prompt
    return text


async def _conversation(world: AdminWorld, agent_id: str) -> str:
    made = await world.call(world.conversations.CreateConversation, CreateConversationRequest(agent_id=agent_id))
    conversation_id: str = made.conversation.id
    return conversation_id


def _edit(world: AdminWorld, agent_id: str, value: str) -> None:
    human = world.peers.blocks[agent_id][0]
    human.value, human.version = value, human.version + 1


async def test_a_change_of_the_instructions_waits_for_a_recompile(world: AdminWorld) -> None:
    agent = await world.create(system="Be kind.", blocks=[block("human", "Ada")])
    first = await _prompt(world, agent.id)
    await world.update(agent.id, system="Be brief.")
    assert await _prompt(world, agent.id) == first
    assert (await _recompile(world, agent.id, dry_run=True)).startswith("Be brief.")
    assert await _prompt(world, agent.id) == first
    anew = await _recompile(world, agent.id)
    assert anew.startswith("Be brief.")
    assert await _prompt(world, agent.id) == anew


async def test_an_edit_of_a_block_rewrites_the_prompt_of_the_default_conversation_alone(world: AdminWorld) -> None:
    agent = await world.create(blocks=[block("human", "Ada")])
    other = await _conversation(world, agent.id)
    _edit(world, agent.id, "Grace")
    assert "Grace" in await _prompt(world, agent.id)
    assert "Grace" not in await _prompt(world, agent.id, other)
    assert "Grace" in await _recompile(world, agent.id, other)
    assert "Grace" in await _prompt(world, agent.id, other)


async def test_an_attached_block_rewrites_nothing(world: AdminWorld) -> None:
    agent = await world.create(blocks=[block("human", "Ada")])
    first = await _prompt(world, agent.id)
    another = await world.create(blocks=[block("notes", "Buy milk.")])
    world.peers.blocks[agent.id].extend(world.peers.blocks[another.id])
    assert await _prompt(world, agent.id) == first
    _edit(world, agent.id, "Grace")
    assert "Buy milk." in await _prompt(world, agent.id)


async def test_a_turn_stores_the_prompt_that_it_gave_to_the_model(world: AdminWorld) -> None:
    agent = await world.create(system="Be kind.", blocks=[block("human", "Ada")])
    other = await _conversation(world, agent.id)
    await world.update(agent.id, system="Be brief.")
    _edit(world, agent.id, "Grace")
    assert (await _prompt(world, agent.id, other)).startswith("Be kind.")
    await world.say(agent.id, "Hello", other)
    after = await _prompt(world, agent.id, other)
    assert after.startswith("Be brief.")
    assert "Grace" in after


async def test_a_fork_and_a_reset_have_prompts_of_their_own(world: AdminWorld) -> None:
    agent = await world.create(system="Be kind.")
    await world.say(agent.id)
    first = await _prompt(world, agent.id)
    await world.update(agent.id, system="Be brief.")
    forked = await world.call(world.conversations.ForkConversation, ForkConversationRequest(agent_id=agent.id))
    assert (await _prompt(world, agent.id, forked.conversation.id)).startswith("Be brief.")
    assert await _prompt(world, agent.id) == first
    await world.call(world.agents.ResetMessages, ResetMessagesRequest(agent_id=agent.id))
    assert (await _prompt(world, agent.id)).startswith("Be brief.")


async def test_a_prompt_that_no_step_was_given_is_not_kept(world: AdminWorld) -> None:
    agent = await world.create(system="Be kind.")
    for system in ("Be brief.", "Be bold."):
        await world.update(agent.id, system=system)
        await _recompile(world, agent.id)
    assert await _texts(world, agent.id) == ["Be bold."]
    await world.say(agent.id)
    await world.update(agent.id, system="Be gone.")
    await _recompile(world, agent.id)
    assert await _texts(world, agent.id) == ["Be bold.", "Be gone."]


async def _texts(world: AdminWorld, agent_id: str) -> list[str]:
    rows = await world.pool.fetch(
        "SELECT text FROM agent.compiled_prompts WHERE agent_id = $1 ORDER BY text", from_public("agent", agent_id)
    )
    return [row["text"].partition("\n")[0] for row in rows]
