// The AI SDK with an agent as its model: `node ai.mjs URL AGENT [MAJOR]`. Prints what each call gave, as JSON.
import { createLetta } from "@letta-ai/vercel-ai-sdk-provider";
import { z } from "zod";

globalThis.AI_SDK_LOG_WARNINGS = false;
const [url, agent, major] = process.argv.slice(2);
const { generateObject, generateText, stepCountIs, streamText, tool } = await import(major === "6" ? "ai-6" : "ai");
const { createOpenAI } = await import(major === "6" ? "openai-for-ai-6" : "@ai-sdk/openai");
const openai = createOpenAI({ baseURL: `${url}/openai/v1`, apiKey: "none" });
const letta = createLetta({ baseUrl: url, token: "none" });
const schema = z.object({ name: z.string() });
const ls = tool({ inputSchema: z.object({ path: z.string() }), execute: async ({ path }) => `${path}a.txt` });
const stopWhen = stepCountIs(3);

async function streamed(options) {
  let text = "";
  for await (const piece of streamText({ ...options, onError: ({ error }) => { throw error; } }).textStream) text += piece;
  return text;
}

const seen = {};
for (const [name, model] of [["chat", openai.chat(agent)], ["responses", openai.responses(agent)]]) {
  const first = await generateText({ model, prompt: "Hello" });
  const messages = [{ role: "user", content: "Hello" }, ...first.response.messages, { role: "user", content: "Again" }];
  const called = await generateText({ model, tools: { ls }, stopWhen, prompt: "What is there?" });
  seen[name] = {
    text: first.text,
    again: (await generateText({ model, messages })).text,
    object: (await generateObject({ model, schema, prompt: "Who am I?" })).object,
    tools: [called.text, called.steps.length],
    stream: await streamed({ model, tools: { ls }, stopWhen, prompt: "And now?" }),
  };
}
const options = { model: letta(), providerOptions: { letta: { agent: { id: agent } } } };
seen.letta = { text: (await generateText({ ...options, prompt: "Hello" })).text, stream: await streamed({ ...options, prompt: "Again" }) };
console.log(JSON.stringify(seen));
