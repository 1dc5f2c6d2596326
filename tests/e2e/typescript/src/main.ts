// Creates an agent, streams one turn and reads the agent's memory back, over gRPC. See docs/clients/typescript.md.
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { StopReason } from "../gen/loci/agent/v1/agent_pb.js";
import { AgentService } from "../gen/loci/agent/v1/agent_service_pb.js";
import { MessageRole } from "../gen/loci/agent/v1/message_pb.js";
import { MessageService } from "../gen/loci/agent/v1/message_service_pb.js";

const transport = createGrpcTransport({
  baseUrl: `http://127.0.0.1:${process.env.LOCI_GRPC_PORT ?? "8284"}`,
});
const agents = createClient(AgentService, transport);
const messages = createClient(MessageService, transport);

const { agent } = await agents.createAgent({
  agent: { name: "typescript", model: "loci/demo" },
  blocks: [{ label: "human", value: "Nothing is known yet." }],
});
if (!agent) throw new Error("CreateAgent answered without an agent");
console.log(`agent ${agent.id}`);

const stream = messages.streamMessages({
  turn: {
    agentId: agent.id,
    messages: [{ role: MessageRole.USER, content: [{ part: { case: "text", value: "My name is Ada." } }] }],
  },
  streamTokens: true,
});
for await (const { event } of stream) {
  switch (event?.event.case) {
    case "delta": {
      const { message } = event.event.value;
      if (message.case === "assistantMessage") console.log(`delta ${JSON.stringify(message.value.content)}`);
      break;
    }
    case "message":
      console.log(`message ${event.event.value.message.case}`);
      break;
    case "end":
      console.log(`end ${StopReason[event.event.value.stopReason]}`);
  }
}

const { agent: after } = await agents.getAgent({ agentId: agent.id });
console.log(`human ${JSON.stringify(after?.blocks.find((block) => block.label === "human")?.value)}`);
await agents.deleteAgent({ agentId: agent.id });
