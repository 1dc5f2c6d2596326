// The Letta Code SDK: `node program.mjs FOLDER MODEL`, the address in LETTA_BASE_URL. Prints what it got, as JSON.
import { createAgent, createSession, resumeSession } from "@letta-ai/letta-code-sdk";

const [cwd, model] = process.argv.slice(2);

async function ask(session, text) {
  await session.send(text);
  let said = "";
  for await (const message of session.stream()) if (message.type === "assistant") said += message.content;
  return said;
}

const agent = await createAgent({ model, persona: "You help Ada.", memfs: true });
const first = resumeSession(agent, { cwd });
const turns = [await ask(first, "say one"), await ask(first, "say two")];
first.close();
const other = createSession(agent, { cwd });
const apart = await ask(other, "say three");
const conversations = [first.conversationId, other.conversationId];
other.close();
console.log(JSON.stringify({ agent, turns, apart, conversations }));
