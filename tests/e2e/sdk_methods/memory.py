"""Blocks, archives, passages and folders that stand for themselves."""

from tests.e2e.sdk_methods.world import EMBEDDING, Cases, World, ids, refused

cases = Cases()


@cases("blocks.create", "blocks.retrieve", "blocks.update", "blocks.delete")
def blocks(world: World) -> None:
    client = world.client.blocks
    made = client.create(
        label="notes", value="one", limit=500, description="What", metadata={"a": 1}, tags=["t"], read_only=True
    )
    found = client.retrieve(made.id)
    assert (found.label, found.value, found.limit, found.tags) == ("notes", "one", 500, ["t"])
    assert (found.metadata, found.read_only) == ({"a": 1}, True)
    assert client.update(made.id, value="two", label="ideas", read_only=False).value == "two"
    assert client.delete(made.id) is None
    refused(404, lambda: client.retrieve(made.id))
    refused(422, lambda: client.create(label="", value="v"), "label")
    refused(422, lambda: client.create(label="notes", value="v", limit=0), "limit")


@cases("blocks.list")
def list_blocks(world: World) -> None:
    label = world.name("listed")
    made = [world.new_block(label=label, value=f"{label} {number}", tags=[label]).id for number in range(3)]
    listed = world.client.blocks.list
    assert ids(listed(label=label, limit=2)) == made
    assert ids(listed(tags=[label], order="desc", limit=1).items) == made[2:]
    assert ids(listed(label=label, after=made[0]).items) == made[1:]
    assert ids(listed(label_search=label).items) == made
    assert ids(listed(value_search=f"{label} 1").items) == made[1:2]
    assert ids(listed(label=label, connected_to_agents_count_eq=[0]).items) == made
    assert ids(listed(label=label, limit=0).items) == made


@cases("blocks.agents.list")
def agents_of_a_block(world: World) -> None:
    block = world.new_block()
    agent = world.new_agent(block_ids=[block.id])
    assert ids(world.client.blocks.agents.list(block.id)) == [agent.id]
    assert world.client.blocks.agents.list(block.id, include=["agent.blocks"]).items[0].blocks


@cases("archives.create", "archives.retrieve", "archives.update", "archives.list", "archives.delete")
def archives(world: World) -> None:
    client, name = world.client.archives, world.name("archive")
    made = client.create(name=name, description="Old things", embedding=EMBEDDING)
    assert client.retrieve(made.id).name == name
    assert client.update(made.id, description="New things").description == "New things"
    assert ids(client.list(name=name)) == [made.id]
    assert made.id in ids(client.list(order="desc", limit=5).items)
    assert client.delete(made.id) is None
    refused(404, lambda: client.retrieve(made.id))
    refused(400, lambda: client.create(name="other", embedding="loci/none"), "none")


@cases("archives.passages.create", "archives.passages.create_many", "archives.passages.delete")
def archive_passages(world: World) -> None:
    archive, client = world.new_archive(), world.client.archives.passages
    one = client.create(archive.id, text="Alone.", tags=["a"], metadata={"page": 1})
    assert (one.text, one.tags, one.metadata) == ("Alone.", ["a"], {"page": 1})
    many = client.create_many(archive.id, passages=[{"text": "Two."}, {"text": "Three.", "tags": ["b"]}])
    assert [made.text for made in many] == ["Two.", "Three."]
    assert client.delete(one.id, archive_id=archive.id) is None
    refused(404, lambda: client.delete(one.id, archive_id=archive.id))
    refused(422, lambda: client.create_many(archive.id, passages=[{"txt": "?"}]), "text")


@cases("passages.search")
def search(world: World) -> None:
    archive = world.new_archive()
    world.client.archives.passages.create(archive.id, text="Hugs was an interpreter.", tags=["h"])
    found = world.client.passages.search(query="interpreter", archive_id=archive.id, limit=3)
    assert [one.passage.text for one in found] == ["Hugs was an interpreter."]
    assert world.client.passages.search(query="x", archive_id=archive.id, tags=["none"], tag_match_mode="all") == []
    assert isinstance(world.client.passages.search(query="Ada", agent_id=world.agent.id), list)
    refused(422, lambda: world.client.passages.search(query="x", limit=0), "limit")


@cases("folders.create", "folders.retrieve", "folders.update", "folders.list", "folders.delete")
def folders(world: World) -> None:
    client, name = world.client.folders, world.name("folder")
    made = client.create(name=name, embedding=EMBEDDING, description="Papers", instructions="Read", metadata={"a": 1})
    found = client.retrieve(made.id)
    assert (found.name, found.description, found.instructions, found.metadata) == (name, "Papers", "Read", {"a": 1})
    assert client.update(made.id, description="Books").description == "Books"
    assert ids(client.list(name=name)) == [made.id]
    refused(409, lambda: client.create(name=name, embedding=EMBEDDING))
    client.delete(made.id)
    refused(404, lambda: client.retrieve(made.id))


@cases("folders.files.upload", "folders.files.list", "folders.files.retrieve", "folders.files.delete")
def files(world: World) -> None:
    folder, client = world.new_folder(), world.client.folders.files
    made = client.upload(folder.id, file=("a.txt", b"One.\n", "text/plain"), name="b.txt")
    assert made.original_file_name == "b.txt"
    again = client.upload(folder.id, file=("b.txt", b"Two.\n", "text/plain"), duplicate_handling="skip")
    assert again.id == made.id
    refused(400, lambda: client.upload(folder.id, file=("b.txt", b"3\n", "text/plain"), duplicate_handling="error"))
    refused(415, lambda: client.upload(folder.id, file=("b.exe", b"MZ\x00\x01\x02", "application/x-msdownload")))
    assert ids(client.list(folder.id, include_content=True)) == [made.id]
    assert client.retrieve(made.id, folder_id=folder.id, include_content=True).id == made.id
    assert client.delete(made.id, folder_id=folder.id) is None
    refused(404, lambda: client.retrieve(made.id, folder_id=folder.id))


@cases("folders.agents.list")
def agents_of_a_folder(world: World) -> None:
    folder = world.new_folder()
    agent = world.new_agent(folder_ids=[folder.id])
    assert list(world.client.folders.agents.list(folder.id)) == [agent.id]
