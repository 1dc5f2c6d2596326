import { useQueryClient } from "@tanstack/react-query";
import { X } from "lucide-react";
import { type FormEvent, useState } from "react";
import { api } from "../api/client";
import { IconButton } from "../ui/icon-button";
import { ProblemBox } from "../ui/problem-box";
import { useAction } from "../ui/use-action";
import { RuleGraph } from "./rule-graph";
import { type Rule, RULE_KINDS, sentenceOf } from "./rules";

interface Props {
  agentId: string;
  rules: Rule[];
  /** Of the agent's tools. */
  names: string[];
  refusal: string | null;
}

/** The rules of an agent about its tools: as a graph, as sentences, and a form for another. */
export function AgentRules({ agentId, rules, names, refusal }: Props) {
  const action = useAction();
  const queries = useQueryClient();
  /** Others may have changed the rules: what is stored is what is changed. */
  const change = (of: (stored: Rule[]) => Rule[]): Promise<boolean> =>
    action.run(async () => {
      const agent = (await api().agents.retrieve(agentId)) as unknown as { tool_rules: Rule[] | null };
      await api().agents.update(agentId, { tool_rules: of(agent.tool_rules ?? []) } as never, { maxRetries: 0 });
      await queries.invalidateQueries({ queryKey: ["agent-tools", agentId] });
    });
  const own = rules.filter((rule) => rule.type !== "requires_approval");
  return (
    <section aria-label="Rules" className="rules">
      <h3>Rules</h3>
      <RuleGraph rules={own} />
      <ul className="rows">
        {own.map((rule) => (
          <li key={JSON.stringify(rule)} className="file-line">
            <span className="small">{sentenceOf(rule)}</span>
            <span className="spacer" />
            {refusal === null && (
              <IconButton
                label={`Remove the rule: ${sentenceOf(rule)}`}
                icon={X}
                onClick={() => void change((stored) => stored.filter((each) => JSON.stringify(each) !== JSON.stringify(rule)))}
              />
            )}
          </li>
        ))}
        {own.length === 0 && <li className="muted small">None: the model chooses freely.</li>}
      </ul>
      {refusal === null && names.length > 0 && <NewRule names={names} add={(rule) => change((stored) => [...stored, rule])} />}
      {action.problem && <ProblemBox title="Could not change the rules" problem={action.problem} />}
    </section>
  );
}

function NewRule({ names, add }: { names: string[]; add: (rule: Rule) => Promise<boolean> }) {
  const [type, setType] = useState("run_first");
  const [isOpen, setOpen] = useState(false);
  const [sentence, setSentence] = useState("");
  const needs = RULE_KINDS[type]?.needs ?? "nothing";
  const submit = async (event: FormEvent<HTMLFormElement>): Promise<void> => {
    event.preventDefault();
    const fields = new FormData(event.currentTarget);
    const children = fields.getAll("children").map(String);
    if (needs === "children" && !children.length) {
      setSentence("Choose at least one tool that may come after it.");
      return;
    }
    setSentence("");
    const rule: Rule = {
      type,
      tool_name: String(fields.get("tool")),
      ...(needs === "children" && { children }),
      ...(needs === "count" && { max_count_limit: Number(fields.get("count")) }),
    };
    if (await add(rule)) setOpen(false);
  };
  if (!isOpen) return <button type="button" onClick={() => setOpen(true)}>Add a rule</button>;
  return (
    <form className="attach" aria-label="New rule" onSubmit={submit}>
      <select name="tool" aria-label="Tool">{names.map((name) => <option key={name}>{name}</option>)}</select>
      <select aria-label="Kind of rule" value={type} onChange={(event) => setType(event.target.value)}>
        {Object.entries(RULE_KINDS).map(([kind, { label }]) => <option key={kind} value={kind}>{label}</option>)}
      </select>
      {needs === "children" && (
        <fieldset className="choices">
          <legend className="small">These</legend>
          {names.map((name) => (
            <label key={name} className="choice small"><input type="checkbox" name="children" value={name} /> <code>{name}</code></label>
          ))}
        </fieldset>
      )}
      {needs === "count" && <input name="count" type="number" min={1} defaultValue={1} aria-label="Most calls" />}
      {sentence && <p role="alert" className="error-text small">{sentence}</p>}
      <div className="block-end">
        <button type="button" onClick={() => setOpen(false)}>Cancel</button>
        <button type="submit" className="primary">Add</button>
      </div>
    </form>
  );
}
