import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import { api } from "../api/client";
import { currentKey } from "../api/key";
import { useMembers } from "../groups/groups";
import { navigate } from "../router";
import { useRefusal } from "../shell/access-gate";
import { AgentPicker, type Chosen } from "../ui/agent-picker";
import { AskButton } from "../ui/ask-button";
import { DraftForm } from "../ui/draft-form";
import { Field } from "../ui/field";
import { ListScreen } from "../ui/list-screen";
import { ProblemBox } from "../ui/problem-box";
import { ago } from "../ui/time";
import { useAction } from "../ui/use-action";
import { type ApiKey, bodyOf, isOwn, ROLES, useKeys } from "./keys";

/** API keys and what their roles may do. */
export default function KeysPage({ keyId }: { keyId: string | null }) {
  const refusal = useRefusal("own");
  if (refusal) return <main className="page"><p className="empty">{refusal} Ask an admin for keys.</p></main>;
  return <Keys keyId={keyId} />;
}

function Keys({ keyId }: { keyId: string | null }) {
  return (
    <ListScreen
      title="Keys"
      noun="key"
      to="/keys"
      open={keyId}
      query={useKeys()}
      refusal={null}
      row={(key) => ({
        title: key.name,
        note: `${key.role} · ${key.last_used_at ? `used ${ago(key.last_used_at)}` : "never used"}`,
        end: isOver(key) && <span className="status failed">Expired</span>,
      })}
      renderDetail={(key) => <Detail key={key.id} apiKey={key} />}
      pages={{ new: <NewKey /> }}
      hint="Choose a key, or make one for a program or a person."
      empty="There are no keys yet."
    />
  );
}

function isOver(key: ApiKey): boolean {
  return key.expires_at !== null && Date.parse(key.expires_at) < Date.now();
}

function NewKey() {
  const action = useAction();
  const queries = useQueryClient();
  const [agents, setAgents] = useState<Chosen[]>([]);
  const [role, setRole] = useState("developer");
  const [secret, setSecret] = useState<{ id: string; key: string } | null>(null);
  if (secret) return <Secret secret={secret} />;
  return (
    <DraftForm
      name="key"
      action={action}
      failure="Could not make the key"
      send={async (fields) => {
        const made = await api().post<{ id: string; key: string }>("/v1/api-keys", { body: bodyOf(fields), maxRetries: 0 });
        setSecret(made);
        await queries.invalidateQueries({ queryKey: ["api-keys"] });
      }}
    >
      <h2>New key</h2>
      <Field label="Name" note="For whom or what it is."><input name="name" required maxLength={100} /></Field>
      <Field label="Role" note={ROLES[role] ?? ""}>
        <select name="role" value={role} onChange={(event) => setRole(event.target.value)}>
          {Object.keys(ROLES).map((each) => <option key={each}>{each}</option>)}
        </select>
      </Field>
      {role === "agent-only" && (
        <AgentPicker label="Only these agents" note="None chosen: all." name="agents" chosen={agents} choose={setAgents} />
      )}
      <Field label="Most requests in a minute" note="Left empty, the server's own limit."><input name="limit" type="number" min={1} /></Field>
      <Field label="Last day" note="Left empty, it does not end."><input name="until" type="date" /></Field>
      <div className="form-end"><button type="submit" className="primary" aria-disabled={action.isBusy}>Make key</button></div>
    </DraftForm>
  );
}

/** The key itself, once: it is never shown again. */
function Secret({ secret }: { secret: { id: string; key: string } }) {
  const [isCopied, setCopied] = useState(false);
  return (
    <div className="detail">
      <h2>The key</h2>
      <p>Copy it now: Loci does not show it again.</p>
      <input className="secret" readOnly aria-label="The new key" value={secret.key} onFocus={(event) => event.target.select()} />
      <div className="block-end">
        {typeof navigator.clipboard !== "undefined" && (
          <button type="button" onClick={() => void navigator.clipboard.writeText(secret.key).then(() => setCopied(true))}>
            {isCopied ? "Copied" : "Copy"}
          </button>
        )}
        <Link className="button" href={`/keys/${secret.id}`}>Done</Link>
      </div>
    </div>
  );
}

function Detail({ apiKey }: { apiKey: ApiKey }) {
  const action = useAction();
  const queries = useQueryClient();
  const isMine = isOwn(apiKey, currentKey());
  const agents = useMembers(apiKey.agent_ids);
  return (
    <article className="detail" aria-label="Key">
      <header className="detail-head">
        <h2 className="cut">{apiKey.name}</h2>
        <AskButton
          question={isMine ? "This page uses it: you are signed out. Revoke it?" : "Revoke it? Whoever uses it is refused."}
          yes="Revoke"
          act={() => action.run(async () => {
            await api().delete(`/v1/api-keys/${apiKey.id}`);
            await queries.invalidateQueries({ queryKey: ["api-keys"] });
            navigate("/keys");
          })}
        >
          Revoke
        </AskButton>
      </header>
      {action.problem && <ProblemBox title="Could not revoke it" problem={action.problem} />}
      <dl className="figures">
        <div><dt>Begins with</dt><dd><code>{apiKey.hint}...</code></dd></div>
        <div><dt>Role</dt><dd>{apiKey.role}</dd></div>
        <div><dt>Last used</dt><dd>{ago(apiKey.last_used_at) || "never"}</dd></div>
        <div><dt>Made</dt><dd>{ago(apiKey.created_at)}</dd></div>
        <div><dt>Ends</dt><dd>{apiKey.expires_at ? new Date(apiKey.expires_at).toLocaleDateString("en") : "never"}</dd></div>
        <div><dt>Requests a minute</dt><dd>{apiKey.requests_per_minute ?? "the server's limit"}</dd></div>
      </dl>
      <p className="small">{ROLES[apiKey.role]}.</p>
      {apiKey.agent_ids.length > 0 && (
        <>
          <h3>Only these agents</h3>
          <ul className="chosen">
            {apiKey.agent_ids.map((id) => <li key={id}><Link href={`/agents/${id}`} className="cut">{agents.get(id)?.name ?? id}</Link></li>)}
          </ul>
        </>
      )}
    </article>
  );
}
