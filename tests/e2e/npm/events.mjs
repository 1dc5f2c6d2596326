// What the official TypeScript client reads of a background stream, and of its rest: node events.mjs URL AGENT
import Letta from "@letta-ai/letta-client";

const [url, agent] = process.argv.slice(2);
const client = new Letta({ baseURL: url, maxRetries: 0 });
const seen = [];
for await (const chunk of await client.agents.messages.create(agent, {
  input: "Talk.",
  streaming: true,
  stream_tokens: true,
  background: true,
})) {
  seen.push(chunk);
}
const said = (chunks) => chunks.filter((chunk) => chunk.message_type === "assistant_message");
const middle = said(seen)[Math.floor(said(seen).length / 2)];
const rest = [];
for await (const chunk of await client.runs.messages.stream(middle.run_id, { starting_after: middle.seq_id })) {
  rest.push(chunk);
}
const text = (chunks) => said(chunks).map((chunk) => chunk.content).join("");
const upTo = seen.slice(0, seen.indexOf(middle) + 1);
console.log(
  JSON.stringify({
    whole: text(seen),
    resumed: text(upTo) + text(rest),
    ends: seen.slice(-2).map((chunk) => chunk.message_type),
    numbered: said(seen).every((chunk) => chunk.seq_id > 0),
  }),
);
