import { useQueryClient } from "@tanstack/react-query";
import { X } from "lucide-react";
import { useDeferredValue, useState } from "react";
import { Link } from "wouter";
import { api } from "../api/client";
import { navigate } from "../router";
import { useRefusal } from "../shell/access-gate";
import { toast } from "../shell/toasts";
import { AskButton } from "../ui/ask-button";
import { IconButton } from "../ui/icon-button";
import { Loaded } from "../ui/loaded";
import { ProblemBox } from "../ui/problem-box";
import { type Action, useAction } from "../ui/use-action";
import { GroupChat } from "./group-chat";
import { GroupForm } from "./group-form";
import { type Group, KINDS, kindWords, useBlocksCalled, useMembers, useSharedBlocks } from "./groups";

/** A group: its agents, what they share, and what was said in it. */
export function GroupDetail({ group }: { group: Group }) {
  const refusal = useRefusal("write");
  const action = useAction();
  const queries = useQueryClient();
  const ids = [...(group.manager_agent_id ? [group.manager_agent_id] : []), ...group.agent_ids];
  const agents = useMembers(ids);
  const named = (id: string): { id: string; name: string } => ({ id, name: agents.get(id)?.name ?? id });
  const renew = (): Promise<void> => queries.invalidateQueries({ queryKey: ["groups"] });
  return (
    <article className="detail" aria-label="Group">
      <header className="detail-head">
        <h2 className="cut">{group.description || "Group"}</h2>
        <AskButton
          question="Delete it? Its agents stay."
          refusal={refusal}
          act={() => action.run(async () => {
            await api().delete(`/v1/groups/${group.id}`);
            await renew();
            navigate("/groups");
          })}
        >
          Delete
        </AskButton>
      </header>
      <p className="muted small">{kindWords(group.manager_type)}. {KINDS[group.manager_type]?.sentence}</p>
      {action.problem && <ProblemBox title="It did not work" problem={action.problem} />}
      {group.manager_agent_id && <><h3>Leads</h3><Members agents={[named(group.manager_agent_id)]} /></>}
      <h3>Agents</h3>
      <Members agents={group.agent_ids.map(named)} />
      <Shared group={group} refusal={refusal} action={action} done={renew} />
      <h3>Conversation</h3>
      <GroupChat groupId={group.id} />
      {/* What it begins with must be there. */}
      {refusal === null && agents.size === new Set(ids).size && (
        <details>
          <summary>Change it</summary>
          <GroupForm
            // Anew with what it begins with, whatever was counted meanwhile.
            key={JSON.stringify({ ...group, turns_counter: null })}
            group={group}
            members={group.agent_ids.map(named)}
            manager={group.manager_agent_id ? named(group.manager_agent_id) : null}
            action={action}
            send={async (body) => {
              await api().patch(`/v1/groups/${group.id}`, { body, maxRetries: 0 });
              await renew();
              toast("Saved");
            }}
          />
        </details>
      )}
    </article>
  );
}

function Members({ agents }: { agents: { id: string; name: string }[] }) {
  return (
    <ol className="chosen">
      {agents.map(({ id, name }) => <li key={id}><Link href={`/agents/${id}`} className="cut">{name}</Link></li>)}
    </ol>
  );
}

/** Blocks that all of its agents have; one that is attached here is attached to each of them. */
function Shared({ group, refusal, action, done }: { group: Group; refusal: string | null; action: Action; done: () => Promise<void> }) {
  const blocks = useSharedBlocks(group.shared_block_ids);
  const [text, setText] = useState("");
  const found = useBlocksCalled(useDeferredValue(text.trim()));
  const others = (found.data ?? []).filter(({ id }) => !group.shared_block_ids.includes(id));
  const change = (verb: "attach" | "detach", id: string): void =>
    void action.run(async () => {
      await api().patch(`/v1/groups/${group.id}/blocks/${verb}/${id}`, { maxRetries: 0 });
      setText("");
      await done();
    });
  return (
    <section className="picker" aria-label="Shared blocks">
      <h3>Shared blocks</h3>
      <Loaded query={blocks} what="the blocks">
        {(all) => all.length === 0 ? <p className="muted small">They share no block.</p> : (
          <ul className="chosen">
            {all.map((block) => (
              <li key={block.id}>
                <code>{block.label}</code>
                <span className="muted small cut">{block.value}</span>
                {refusal === null && (
                  <span className="row-actions"><IconButton label={`Detach ${block.label}`} icon={X} onClick={() => change("detach", block.id)} /></span>
                )}
              </li>
            ))}
          </ul>
        )}
      </Loaded>
      {refusal === null && (
        <input type="search" aria-label="Find a block to share" placeholder="Find a block to share, by its label" value={text} onChange={(event) => setText(event.target.value)} />
      )}
      {text && (
        <ul className="found" aria-label="Blocks found">
          {others.map((block) => (
            <li key={block.id}>
              <button type="button" className="quiet" onClick={() => change("attach", block.id)}>Share {block.label}</button>
              <span className="muted small cut">{block.value}</span>
            </li>
          ))}
          {found.isSuccess && others.length === 0 && <li className="muted small">No other block has this label.</li>}
        </ul>
      )}
    </section>
  );
}
