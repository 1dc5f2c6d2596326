import { useQueryClient } from "@tanstack/react-query";
import { EllipsisVertical } from "lucide-react";
import { navigate } from "../router";
import { useRefusal } from "../shell/access-gate";
import { Menu } from "../ui/menu";
import { cloneAgent, deleteSoon, exportAgent } from "./actions";
import type { Agent } from "./queries";

/** What may be done with an agent as a whole. */
export function AgentMenu({ agent, onDelete }: { agent: Agent; onDelete?: () => void }) {
  const queries = useQueryClient();
  const refusal = useRefusal("write", agent.id);
  return (
    <Menu
      label={`More about ${agent.name}`}
      icon={EllipsisVertical}
      items={[
        {
          label: "Clone",
          refusal,
          run: async () => {
            const id = await cloneAgent(agent, queries);
            if (id) navigate(`/agents/${id}`);
          },
        },
        { label: "Export as .af", refusal, run: () => exportAgent(agent) },
        {
          label: "Delete",
          refusal,
          isDangerous: true,
          run: () => {
            deleteSoon(agent, queries);
            onDelete?.();
          },
        },
      ]}
    />
  );
}
