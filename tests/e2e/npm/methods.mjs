// Every method of the official TypeScript client, once: node methods.mjs BASE_URL MCP_URL DEVICE CONNECTION, the ids of a
// device that is connected and of its connection. Prints one JSON object:
// methods: those that the client has; cases: for each case its error, if any, and the requests that it made.
import assert from "node:assert/strict";
import Letta, { toFile } from "@letta-ai/letta-client";

const [baseURL, mcpUrl, deviceId, connectionId] = process.argv.slice(2);
const MODEL = "loci/demo";
const EMBEDDING = "loci/hash";
const UNKNOWN = "00000000-0000-4000-8000-0000000000aa";
const HELLO = [{ role: "user", content: "Hello." }];
const CALLED_ON_CLIENT = ["health"];

let requests = [];
async function noted(url, init) {
  const answer = await fetch(url, init);
  requests.push([init?.method?.toUpperCase() ?? "GET", new URL(url).pathname, answer.status]);
  return answer;
}
const client = new Letta({ baseURL, maxRetries: 0, timeout: 30_000, fetch: noted });
const { agents, blocks, archives, folders, tools, conversations, runs, steps, templates } = client;

let number = 0;
const name = (stem) => `ts_${stem}_${++number}`;
const source = (tool) => `def ${tool}() -> str:\n    """Say the name."""\n    return "${tool}"\n`;
const once = (make) => {
  let made;
  return () => (made ??= make());
};
const all = async (page) => {
  const found = [];
  for await (const one of await page) found.push(one);
  return found;
};
const newAgent = (options = {}) =>
  agents.create({ model: MODEL, embedding: EMBEDDING, memory_blocks: [{ label: "human", value: "" }], ...options });
const newTool = () => tools.create({ source_code: source(name("tool")) });
const newBlock = () => blocks.create({ label: name("label"), value: "v" });
const newArchive = () => archives.create({ name: name("archive"), embedding: EMBEDDING });
const newFolder = () => folders.create({ name: name("folder"), embedding: EMBEDDING });
const newFile = async (folder) =>
  folders.files.upload(folder.id, { file: await toFile(Buffer.from("One.\n"), `${name("file")}.txt`) });
const newServer = () =>
  client.mcpServers.create({
    server_name: name("server"),
    config: { mcp_server_type: "streamable_http", server_url: mcpUrl },
  });
const agent = once(async () => {
  const made = await newAgent({ name: name("Reader") });
  await agents.messages.create(made.id, { input: "My name is Ada." });
  return made;
});
const run = once(async () => (await all(runs.list({ agent_id: (await agent()).id, order: "asc", limit: 1 })))[0]);
const step = once(async () => (await all(runs.steps.list((await run()).id)))[0]);
const double = once(() =>
  tools.upsert({
    source_code:
      'def double(number: int) -> int:\n    """Double.\n\n    Args:\n        number (int): What.\n    """\n    return 2 * number\n',
  }),
);
const post = async (path, body) => {
  const headers = { "content-type": "application/json" };
  const answer = await fetch(`${baseURL}${path}`, { method: "POST", headers, body: JSON.stringify(body) });
  assert.ok(answer.ok, await answer.clone().text());
  return answer.json();
};
async function refused(status, call) {
  const error = await call.then(
    () => null,
    (raised) => raised,
  );
  assert.equal(error?.status, status, String(error));
}
const types = (chunks) => chunks.map((chunk) => chunk.message_type);
const endsWell = (chunks) => assert.deepEqual(types(chunks).slice(-2), ["stop_reason", "usage_statistics"]);

async function agentCrud() {
  const made = await newAgent({ name: name("Whole"), tags: ["b"], timezone: "Europe/Berlin" });
  const found = await agents.retrieve(made.id, { include: ["agent.tags"] });
  assert.deepEqual([found.tags, found.tools], [["b"], []]);
  assert.equal((await agents.update(made.id, { description: "new" })).description, "new");
  assert.ok((await all(agents.list({ name: made.name, limit: 1 }))).some((one) => one.id === made.id));
  assert.equal(typeof (await agents.recompile(made.id)), "string");
  await agents.delete(made.id);
  await refused(404, agents.retrieve(made.id));
  await refused(422, agents.retrieve("agent-42"));
}
async function transfer() {
  const exported = await agents.exportFile((await agent()).id);
  const text = typeof exported === "string" ? exported : JSON.stringify(exported);
  const taken = await agents.importFile({ file: await toFile(Buffer.from(text), "agent.af") });
  assert.equal(taken.agent_ids.length, 1);
}
async function agentBlocks() {
  const [made, block] = await Promise.all([newAgent(), newBlock()]);
  const of = { agent_id: made.id };
  await agents.blocks.attach(block.id, of);
  assert.equal((await agents.blocks.update(block.label, { ...of, value: "new" })).value, "new");
  assert.equal((await agents.blocks.retrieve(block.label, of)).value, "new");
  assert.equal((await all(agents.blocks.list(made.id, { limit: 1 }))).length, 2);
  await agents.blocks.detach(block.id, of);
}
async function agentTools() {
  const of = { agent_id: (await newAgent()).id };
  const tool = await double();
  await agents.tools.attach(tool.id, of);
  assert.ok((await all(agents.tools.list(of.agent_id))).some((one) => one.id === tool.id));
  assert.equal(String((await agents.tools.run("double", { ...of, args: { number: 21 } })).func_return), "42");
  assert.equal(await agents.tools.updateApproval("double", { ...of, body_requires_approval: true }), null);
  assert.ok((await agents.retrieve(of.agent_id)).tool_rules.some((rule) => rule.type === "requires_approval"));
  await agents.tools.detach(tool.id, of);
}
async function agentArchives() {
  const [made, archive] = await Promise.all([newAgent(), newArchive()]);
  await agents.archives.attach(archive.id, { agent_id: made.id });
  await agents.archives.detach(archive.id, { agent_id: made.id });
}
async function agentPassages() {
  const made = await newAgent();
  const [passage] = await agents.passages.create(made.id, { text: "GHC came first.", tags: ["a"] });
  assert.equal((await agents.passages.list(made.id, { limit: 5 })).length, 1);
  assert.equal((await agents.passages.search(made.id, { query: "GHC", tags: ["a"] })).count, 1);
  await agents.passages.delete(passage.id, { agent_id: made.id });
}
async function agentFiles() {
  const [made, folder] = await Promise.all([newAgent(), newFolder()]);
  const of = { agent_id: made.id };
  const file = await newFile(folder);
  await agents.folders.attach(folder.id, of);
  assert.equal((await all(agents.folders.list(made.id)))[0].id, folder.id);
  for (;;) {
    const { processing_status } = await folders.files.retrieve(file.id, { folder_id: folder.id });
    if (processing_status === "completed") break;
    assert.notEqual(processing_status, "error");
  }
  await agents.files.open(file.id, of);
  assert.deepEqual((await all(agents.files.list(made.id))).map((one) => one.is_open), [true]);
  await agents.files.close(file.id, of);
  await agents.files.closeAll(made.id);
  await agents.folders.detach(folder.id, of);
}
async function agentIdentities() {
  const made = await newAgent();
  const body = { identifier_key: name("key"), name: "Ada", identity_type: "user" };
  const identity = await post("/v1/identities/", body);
  await agents.identities.attach(identity.id, { agent_id: made.id });
  await agents.identities.detach(identity.id, { agent_id: made.id });
}
async function schedule() {
  const of = { agent_id: (await newAgent()).id };
  const daily = { type: "recurring", cron_expression: "0 9 * * *" };
  const made = await agents.schedule.create(of.agent_id, { messages: HELLO, schedule: daily });
  assert.equal((await agents.schedule.retrieve(made.id, of)).agent_id, of.agent_id);
  assert.equal((await agents.schedule.list(of.agent_id, { limit: 1 })).scheduled_messages.length, 1);
  await agents.schedule.delete(made.id, of);
}
async function agentMessages() {
  const { id } = await newAgent();
  const reply = await agents.messages.create(id, { input: "Hello.", max_steps: 3 });
  assert.equal(reply.stop_reason.stop_reason, "end_turn");
  endsWell(await all(agents.messages.create(id, { messages: HELLO, streaming: true, stream_tokens: true })));
  endsWell(await all(agents.messages.stream(id, { messages: HELLO })));
  const begun = await agents.messages.createAsync(id, { messages: HELLO });
  endsWell(await all(runs.messages.stream(begun.id, { include_pings: false })));
  assert.ok((await all(agents.messages.list(id, { limit: 3, order: "asc" }))).length > 6);
  assert.ok(await agents.messages.cancel(id, { run_ids: [begun.id] }));
  assert.ok((await agents.messages.compact(id, { compaction_settings: { model: MODEL, mode: "all" } })).summary);
  assert.equal((await agents.messages.reset(id, {})).id, id);
  await refused(422, agents.messages.create(id, { messages: HELLO, input: "Hello." }));
  await refused(409, agents.messages.cancel(id));
}
async function blockCrud() {
  const made = await newBlock();
  await newAgent({ block_ids: [made.id] });
  assert.equal((await blocks.update(made.id, { value: "two" })).value, "two");
  assert.equal((await blocks.retrieve(made.id)).value, "two");
  assert.equal((await all(blocks.list({ label: made.label }))).length, 1);
  assert.equal((await all(blocks.agents.list(made.id))).length, 1);
  await blocks.delete(made.id);
}
async function archiveCrud() {
  const made = await newArchive();
  assert.equal((await archives.update(made.id, { description: "new" })).description, "new");
  assert.equal((await archives.retrieve(made.id)).id, made.id);
  assert.equal((await all(archives.list({ name: made.name }))).length, 1);
  const passage = await archives.passages.create(made.id, { text: "Hugs was an interpreter." });
  assert.equal((await archives.passages.createMany(made.id, { passages: [{ text: "b" }] })).length, 1);
  assert.ok((await client.passages.search({ query: "interpreter", archive_id: made.id })).length);
  await archives.passages.delete(passage.id, { archive_id: made.id });
  await archives.delete(made.id);
}
async function folderCrud() {
  const made = await newFolder();
  assert.equal((await folders.update(made.id, { description: "new" })).description, "new");
  assert.equal((await folders.retrieve(made.id)).id, made.id);
  assert.equal((await all(folders.list({ name: made.name }))).length, 1);
  const file = await newFile(made);
  assert.equal((await all(folders.files.list(made.id))).length, 1);
  assert.equal((await folders.files.retrieve(file.id, { folder_id: made.id })).id, file.id);
  await folders.files.delete(file.id, { folder_id: made.id });
  assert.deepEqual(await folders.agents.list(made.id), []);
  await folders.delete(made.id);
}
async function toolCrud() {
  const made = await newTool();
  assert.deepEqual((await tools.update(made.id, { tags: ["u"] })).tags, ["u"]);
  assert.equal((await tools.retrieve(made.id)).id, made.id);
  assert.equal((await all(tools.list({ name: made.name }))).length, 1);
  assert.equal((await tools.upsert({ source_code: source(made.name) })).id, made.id);
  assert.ok((await tools.search({ query: made.name, search_mode: "fts" })).length);
  await tools.delete(made.id);
}
async function mcp() {
  const made = await newServer();
  const { mcpServers } = client;
  const config = { mcp_server_type: "streamable_http", server_url: mcpUrl };
  await mcpServers.update(made.id, { server_name: name("server"), config });
  assert.equal((await mcpServers.retrieve(made.id)).id, made.id);
  assert.ok((await mcpServers.list()).some((one) => one.id === made.id));
  await mcpServers.refresh(made.id);
  const of = { mcp_server_id: made.id };
  const add = (await mcpServers.tools.list(made.id)).find((tool) => tool.name.startsWith("add"));
  assert.equal((await mcpServers.tools.retrieve(add.id, of)).id, add.id);
  assert.equal(String((await mcpServers.tools.run(add.id, { ...of, args: { a: 2, b: 3 } })).func_return), "5");
  await mcpServers.delete(made.id);
}
async function conversationCrud() {
  const { id: agent_id } = await agent();
  const made = await conversations.create({ agent_id, summary: "About Ada" });
  assert.equal((await conversations.update(made.id, { summary: "Hers" })).summary, "Hers");
  assert.equal((await conversations.retrieve(made.id)).summary, "Hers");
  assert.ok((await conversations.list({ agent_id, limit: 5 })).length);
  const said = await all(conversations.messages.create(made.id, { messages: HELLO, background: true }));
  endsWell(said);
  endsWell(await all(conversations.messages.create(made.id, { messages: HELLO })));
  const run_id = said.find((chunk) => chunk.message_type === "ping").run_id;
  endsWell(await all(conversations.messages.stream(made.id, { run_id })));
  assert.ok((await all(conversations.messages.list(made.id, { limit: 2 }))).length);
  assert.equal((await conversations.fork(made.id)).agent_id, agent_id);
  assert.equal(typeof (await conversations.recompile(made.id)), "string");
  const settings = { model: MODEL, mode: "all" };
  assert.ok((await conversations.messages.compact(made.id, { compaction_settings: settings })).num_messages_before);
  await conversations.delete(made.id);
}
async function cancelConversation() {
  // A model that says nothing for as long as nobody cancels: the fake behind this handle is told so by the test.
  const made = await conversations.create({ agent_id: (await agent()).id });
  const options = { messages: HELLO, override_model: "openai/gpt-4o-mini", background: true };
  const waiting = (await conversations.messages.create(made.id, options))[Symbol.asyncIterator]();
  const { run_id } = (await waiting.next()).value;
  assert.deepEqual(await conversations.cancel(made.id), { [run_id]: "cancelled" });
  while (!(await waiting.next()).done);
}
async function runParts() {
  const { id } = await run();
  assert.equal((await runs.retrieve(id)).status, "completed");
  assert.ok((await all(runs.list({ agent_id: (await agent()).id, statuses: ["completed"] }))).length);
  assert.ok((await all(runs.messages.list(id))).length);
  assert.ok((await all(runs.steps.list(id))).length);
  assert.ok((await runs.usage.retrieve(id)).total_tokens);
  assert.ok((await runs.trace.retrieve(id, { limit: 10 })).length);
}
async function stepParts() {
  const { id } = await step();
  assert.equal((await steps.retrieve(id)).id, id);
  assert.ok((await all(steps.list({ agent_id: (await agent()).id, limit: 5 }))).length);
  assert.ok((await all(steps.messages.list(id))).length);
  assert.equal((await steps.metrics.retrieve(id)).id, id);
  assert.equal((await steps.feedback.create(id, { feedback: "positive" })).feedback, "positive");
}
async function stepTrace() {
  const { id } = await newAgent();
  await agents.messages.create(id, { input: "Hello." }, { headers: { "x-loci-include-trace": "1" } });
  const [traced] = await all(steps.list({ agent_id: id }));
  assert.ok(await steps.trace.retrieve(traced.id));
}
async function storedMessages() {
  const { id } = await agent();
  const [mine] = await all(agents.messages.list(id, { include_return_message_types: ["user_message"] }));
  assert.equal((await client.messages.retrieve(mine.id))[0].content, "My name is Ada.");
  assert.ok((await client.messages.list({ limit: 5 })).length);
  assert.ok((await client.messages.search({ query: "Ada", agent_id: id, search_mode: "fts" })).length);
}
async function lists() {
  assert.equal((await client.health()).status, "ok");
  assert.ok((await client.models.list()).some((model) => model.handle === MODEL));
  assert.ok((await client.models.embeddings.list()).some((model) => model.handle === EMBEDDING));
  const tag = name("tag");
  await newAgent({ tags: [tag] });
  assert.deepEqual(await client.tags.list({ query_text: tag }), [tag]);
}
async function accessTokens() {
  const { id } = await agent();
  const policy = [{ type: "agent", id, access: ["read_messages"] }];
  const made = await client.accessTokens.create({ hostname: "https://app.example.com", policy });
  assert.equal((await client.accessTokens.list({ agentId: id, limit: 1 })).tokens[0].hostname, made.hostname);
  await client.accessTokens.delete(made.token, {});
}
async function templateCrud() {
  const { id } = await agent();
  const made = await templates.create({ type: "agent", agent_id: id, name: name("template").replaceAll("_", "-") });
  const file = await client.get(`/v1/agents/${id}/export`);
  await templates.update(made.name, { agent_file_json: file, save_existing_changes: true });
  await templates.save(made.name, { message: "Second" });
  await templates.rollback(made.name, { version: made.latest_version });
  const twins = await templates.agents.create(`${made.name}:${made.latest_version}`, { agent_name: "Twin" });
  assert.equal(twins.agent_ids.length, 1);
  await templates.delete(made.name, {});
}
async function environments() {
  assert.equal((await client.environments.retrieve(deviceId)).deviceId, deviceId);
  assert.ok((await client.environments.list({ limit: 100 })).connections.length);
  const message = { role: "user", content: "Hello.", client_message_id: UNKNOWN };
  const body = { messages: [message], agentId: (await agent()).id };
  assert.ok((await client.environments.sendMessage(connectionId, body)).success);
}

const CASES = {
  "accessTokens.create": accessTokens,
  "accessTokens.delete": accessTokens,
  "accessTokens.list": accessTokens,
  "agents.archives.attach": agentArchives,
  "agents.archives.detach": agentArchives,
  "agents.blocks.attach": agentBlocks,
  "agents.blocks.detach": agentBlocks,
  "agents.blocks.list": agentBlocks,
  "agents.blocks.retrieve": agentBlocks,
  "agents.blocks.update": agentBlocks,
  "agents.create": agentCrud,
  "agents.delete": agentCrud,
  "agents.exportFile": transfer,
  "agents.files.close": agentFiles,
  "agents.files.closeAll": agentFiles,
  "agents.files.list": agentFiles,
  "agents.files.open": agentFiles,
  "agents.folders.attach": agentFiles,
  "agents.folders.detach": agentFiles,
  "agents.folders.list": agentFiles,
  "agents.identities.attach": agentIdentities,
  "agents.identities.detach": agentIdentities,
  "agents.importFile": transfer,
  "agents.list": agentCrud,
  "agents.messages.cancel": agentMessages,
  "agents.messages.compact": agentMessages,
  "agents.messages.create": agentMessages,
  "agents.messages.createAsync": agentMessages,
  "agents.messages.list": agentMessages,
  "agents.messages.reset": agentMessages,
  "agents.messages.stream": agentMessages,
  "agents.passages.create": agentPassages,
  "agents.passages.delete": agentPassages,
  "agents.passages.list": agentPassages,
  "agents.passages.search": agentPassages,
  "agents.recompile": agentCrud,
  "agents.retrieve": agentCrud,
  "agents.schedule.create": schedule,
  "agents.schedule.delete": schedule,
  "agents.schedule.list": schedule,
  "agents.schedule.retrieve": schedule,
  "agents.tools.attach": agentTools,
  "agents.tools.detach": agentTools,
  "agents.tools.list": agentTools,
  "agents.tools.run": agentTools,
  "agents.tools.updateApproval": agentTools,
  "agents.update": agentCrud,
  "archives.create": archiveCrud,
  "archives.delete": archiveCrud,
  "archives.list": archiveCrud,
  "archives.passages.create": archiveCrud,
  "archives.passages.createMany": archiveCrud,
  "archives.passages.delete": archiveCrud,
  "archives.retrieve": archiveCrud,
  "archives.update": archiveCrud,
  "blocks.agents.list": blockCrud,
  "blocks.create": blockCrud,
  "blocks.delete": blockCrud,
  "blocks.list": blockCrud,
  "blocks.retrieve": blockCrud,
  "blocks.update": blockCrud,
  "conversations.cancel": cancelConversation,
  "conversations.create": conversationCrud,
  "conversations.delete": conversationCrud,
  "conversations.fork": conversationCrud,
  "conversations.list": conversationCrud,
  "conversations.messages.compact": conversationCrud,
  "conversations.messages.create": conversationCrud,
  "conversations.messages.list": conversationCrud,
  "conversations.messages.stream": conversationCrud,
  "conversations.recompile": conversationCrud,
  "conversations.retrieve": conversationCrud,
  "conversations.update": conversationCrud,
  "environments.list": environments,
  "environments.retrieve": environments,
  "environments.sendMessage": environments,
  "folders.agents.list": folderCrud,
  "folders.create": folderCrud,
  "folders.delete": folderCrud,
  "folders.files.delete": folderCrud,
  "folders.files.list": folderCrud,
  "folders.files.retrieve": folderCrud,
  "folders.files.upload": folderCrud,
  "folders.list": folderCrud,
  "folders.retrieve": folderCrud,
  "folders.update": folderCrud,
  "health": lists,
  "mcpServers.create": mcp,
  "mcpServers.delete": mcp,
  "mcpServers.list": mcp,
  "mcpServers.refresh": mcp,
  "mcpServers.retrieve": mcp,
  "mcpServers.tools.list": mcp,
  "mcpServers.tools.retrieve": mcp,
  "mcpServers.tools.run": mcp,
  "mcpServers.update": mcp,
  "messages.list": storedMessages,
  "messages.retrieve": storedMessages,
  "messages.search": storedMessages,
  "models.embeddings.list": lists,
  "models.list": lists,
  "passages.search": archiveCrud,
  "runs.list": runParts,
  "runs.messages.list": runParts,
  "runs.messages.stream": agentMessages,
  "runs.retrieve": runParts,
  "runs.steps.list": runParts,
  "runs.trace.retrieve": runParts,
  "runs.usage.retrieve": runParts,
  "steps.feedback.create": stepParts,
  "steps.list": stepParts,
  "steps.messages.list": stepParts,
  "steps.metrics.retrieve": stepParts,
  "steps.retrieve": stepParts,
  "steps.trace.retrieve": stepTrace,
  "tags.list": lists,
  "templates.agents.create": templateCrud,
  "templates.create": templateCrud,
  "templates.delete": templateCrud,
  "templates.rollback": templateCrud,
  "templates.save": templateCrud,
  "templates.update": templateCrud,
  "tools.create": toolCrud,
  "tools.delete": toolCrud,
  "tools.list": toolCrud,
  "tools.retrieve": toolCrud,
  "tools.search": toolCrud,
  "tools.update": toolCrud,
  "tools.upsert": toolCrud,
};

function* walk(owner, prefix) {
  for (const method of Object.getOwnPropertyNames(Object.getPrototypeOf(owner))) {
    if (method !== "constructor") yield prefix + method;
  }
  for (const [part, value] of Object.entries(owner)) {
    if (value?._client === client) yield* walk(value, `${prefix}${part}.`);
  }
}
const methods = [...CALLED_ON_CLIENT];
for (const [part, value] of Object.entries(client)) {
  if (value?._client === client) methods.push(...walk(value, `${part}.`));
}

const done = new Map();
for (const run of new Set(Object.values(CASES))) {
  requests = [];
  const error = await run().then(
    () => null,
    (raised) => `${raised?.stack ?? raised}`,
  );
  done.set(run, { error, requests });
}
const cases = Object.fromEntries(Object.entries(CASES).map(([method, run]) => [method, done.get(run)]));
console.log(JSON.stringify({ methods, cases }));
