// The walk with the official TypeScript client: node walk.mjs BASE_URL. Prints one JSON object of what it saw.
import Letta from "@letta-ai/letta-client";

const client = new Letta({ baseURL: process.argv[2], maxRetries: 0, timeout: 30_000 });
const seen = {};

const agent = await client.agents.create({
  model: "loci/demo",
  memory_blocks: [
    { label: "human", value: "Nothing is known yet." },
    { label: "persona", value: "I am a helpful agent." },
  ],
  tools: ["archival_memory_insert", "archival_memory_search"],
});
seen.tools = agent.tools.map((tool) => tool.name).sort();

const reply = await client.agents.messages.create(agent.id, { input: "My name is Ada and I like Haskell." });
seen.stopReason = reply.stop_reason.stop_reason;
seen.human = (await client.agents.blocks.retrieve("human", { agent_id: agent.id })).value;

const messages = [{ role: "user", content: "What is my name?" }];
seen.steps = [];
for await (const chunk of await client.agents.messages.create(agent.id, { messages, streaming: true })) {
  seen.steps.push(chunk.message_type);
}
seen.tokens = [];
const options = { messages, streaming: true, stream_tokens: true };
for await (const chunk of await client.agents.messages.create(agent.id, options)) {
  if (chunk.message_type === "assistant_message") seen.tokens.push(chunk.content);
}

await client.agents.passages.create(agent.id, { text: "Ada's first compiler was GHC 4.08." });
const found = await client.agents.passages.search(agent.id, { query: "first compiler" });
seen.found = found.results[0].content;

const source_code = [
  "def double(number: int) -> int:",
  '    """Double a number.',
  "",
  "    Args:",
  "        number (int): What to double.",
  '    """',
  "    return 2 * number",
].join("\n");
const tool = await client.tools.upsert({ source_code });
await client.agents.tools.attach(tool.id, { agent_id: agent.id });
const doubled = await client.agents.messages.create(agent.id, { input: "use double with number=21" });
seen.doubled = doubled.messages.find((message) => message.message_type === "tool_return_message").tool_return;

seen.listed = 0;
for await (const message of client.agents.messages.list(agent.id, { limit: 5, order: "asc" })) {
  if (message.id) seen.listed += 1;
}
await client.agents.delete(agent.id);
seen.gone = await client.agents.retrieve(agent.id).then(() => 200, (error) => error.status);
console.log(JSON.stringify(seen));
