import { useQuery, useQueryClient } from "@tanstack/react-query";
import { X } from "lucide-react";
import { useDeferredValue, useState } from "react";
import { Link } from "wouter";
import { api } from "../api/client";
import { useRefusal } from "../shell/access-gate";
import { IconButton } from "../ui/icon-button";
import { Loaded } from "../ui/loaded";
import { ProblemBox } from "../ui/problem-box";
import { Toggle } from "../ui/toggle";
import { type Action, useAction } from "../ui/use-action";
import { AgentRules } from "./agent-rules";
import type { Rule } from "./rules";
import { type Tool, useTools } from "./tools";

/** The tools that an agent may call, and the rules about them. */
export function AgentTools({ agentId }: { agentId: string }) {
  const tools = useQuery({
    queryKey: ["agent-tools", agentId],
    queryFn: async () => {
      const agent = await api().agents.retrieve(agentId, { include: ["agent.tools"] } as never);
      const { tools: attached, tool_rules } = agent as unknown as { tools: Tool[]; tool_rules: Rule[] | null };
      return { tools: attached, rules: tool_rules ?? [] };
    },
  });
  const refusal = useRefusal("write_agent", agentId);
  const action = useAction();
  const queries = useQueryClient();
  const change = (act: () => Promise<unknown>): Promise<boolean> =>
    action.run(async () => {
      await act();
      await queries.invalidateQueries({ queryKey: ["agent-tools", agentId] });
    });
  return (
    <div className="pane">
      <Loaded query={tools} what="the tools">
        {({ tools: attached, rules }) => (
          <>
            <ul className="rows agent-tools" aria-label="Tools of the agent">
              {attached.map((tool) => (
                <AgentTool key={tool.id} agentId={agentId} tool={tool} rules={rules} refusal={refusal} change={change} />
              ))}
              {attached.length === 0 && <li className="empty">It has no tools. Attach one below.</li>}
            </ul>
            {refusal === null && <Attach attached={attached} attach={(id) => void change(() => api().agents.tools.attach(id, { agent_id: agentId }))} action={action} />}
            {action.problem && <ProblemBox title="Could not change the tools" problem={action.problem} />}
            <AgentRules agentId={agentId} rules={rules} names={attached.map((tool) => tool.name)} refusal={refusal} />
          </>
        )}
      </Loaded>
    </div>
  );
}

interface ToolProps {
  agentId: string;
  tool: Tool;
  rules: Rule[];
  refusal: string | null;
  change: (act: () => Promise<unknown>) => Promise<boolean>;
}

function AgentTool({ agentId, tool, rules, refusal, change }: ToolProps) {
  const asks = rules.some((rule) => rule.type === "requires_approval" && rule.tool_name === tool.name);
  return (
    <li className="file">
      <div className="file-line">
        <Link href={`/tools/${tool.id}`} className="cut"><code>{tool.name}</code></Link>
        <span className="spacer" />
        <Toggle
          label="asks first"
          title={refusal ?? undefined}
          isOn={asks}
          isDisabled={refusal !== null}
          change={(isOn) => change(() => api().agents.tools.updateApproval(tool.name, { agent_id: agentId, body_requires_approval: isOn }))}
        />
        {refusal === null && (
          <IconButton label={`Detach ${tool.name}`} icon={X} onClick={() => void change(() => api().agents.tools.detach(tool.id, { agent_id: agentId }))} />
        )}
      </div>
      <p className="muted small cut">{tool.description}</p>
    </li>
  );
}

function Attach({ attached, attach, action }: { attached: Tool[]; attach: (id: string) => void; action: Action }) {
  const [text, setText] = useState("");
  const found = useTools(useDeferredValue(text.trim()), "all");
  const known = new Set(attached.map((each) => each.id));
  const others = (found.data ?? []).filter((each) => !known.has(each.id)).slice(0, 8);
  return (
    <div className="attach">
      <input type="search" aria-label="Find a tool to attach" placeholder="Find a tool to attach" value={text} onChange={(event) => setText(event.target.value)} />
      {text && (
        <ul className="rows" aria-label="Tools to attach">
          {others.map((tool) => (
            <li key={tool.id} className="file-line">
              <code className="cut">{tool.name}</code>
              <span className="spacer" />
              <button type="button" className="quiet" aria-disabled={action.isBusy} aria-label={`Attach ${tool.name}`} onClick={() => attach(tool.id)}>Attach</button>
            </li>
          ))}
          {found.isSuccess && others.length === 0 && <li className="muted small">No other tool fits. <Link href="/tools/new">Write one</Link></li>}
        </ul>
      )}
      {found.isError && <p className="muted small">The catalogue cannot be read: {found.error.message}</p>}
    </div>
  );
}
