import { useQueryClient } from "@tanstack/react-query";
import { type RefObject, useRef, useState } from "react";
import { api } from "../api/client";
import { navigate } from "../router";
import { useRefusal } from "../shell/access-gate";
import { toast } from "../shell/toasts";
import { AskButton } from "../ui/ask-button";
import { DraftForm } from "../ui/draft-form";
import { Field } from "../ui/field";
import { ProblemBox } from "../ui/problem-box";
import { ago } from "../ui/time";
import { useAction } from "../ui/use-action";
import { AllModels } from "./all-models";
import { checkOf, type Provider, providerOf } from "./providers";

/** The types that a tenant's provider may have; others can be written. */
const TYPES = [
  "openai", "anthropic", "google_ai", "google_vertex", "azure", "bedrock", "baseten", "cerebras", "deepseek", "fireworks", "groq",
  "hugging-face", "minimax", "mistral", "moonshot", "openrouter", "together", "xai", "zai", "ollama", "vllm", "sglang", "lmstudio_openai",
];

interface Checked {
  message: string;
}

export function NewProvider() {
  const action = useAction();
  const queries = useQueryClient();
  const box = useRef<HTMLDivElement>(null);
  return (
    <DraftForm
      name="provider"
      action={action}
      failure="Could not add the provider"
      send={async (fields) => {
        const made = await api().post<Provider>("/v1/providers", { body: providerOf(fields), maxRetries: 0 });
        await queries.invalidateQueries();
        navigate(`/models/${made.id}`);
      }}
    >
      <h2>New provider</h2>
      <div ref={box} className="form plain-form">
        <Field label="Name" note="Handles begin with it: name/model."><input name="name" required maxLength={100} /></Field>
        <Field label="Type">
          <input name="provider_type" required list="provider-types" autoComplete="off" />
        </Field>
        <datalist id="provider-types">{TYPES.map((each) => <option key={each}>{each}</option>)}</datalist>
        <Field label="Key" note="Stored encrypted, and never shown again."><input name="api_key" type="password" autoComplete="off" /></Field>
        <Connection provider={null} />
      </div>
      <Check of={box} ask={(fields) => api().post<Checked>("/v1/providers/check", { body: checkOf(fields), maxRetries: 0 })} />
      <div className="form-end"><button type="submit" className="primary" aria-disabled={action.isBusy}>Add provider</button></div>
    </DraftForm>
  );
}

/** Where a provider is; most need nothing of it. */
function Connection({ provider }: { provider: Provider | null }) {
  return (
    <>
      <Field label="Address" note="Left empty, the vendor's own."><input name="base_url" type="url" defaultValue={provider?.base_url ?? ""} /></Field>
      <details>
        <summary className="small">Region, API version, access key</summary>
        <div className="form plain-form">
          <Field label="Region"><input name="region" defaultValue={provider?.region ?? ""} /></Field>
          <Field label="API version"><input name="api_version" defaultValue={provider?.api_version ?? ""} /></Field>
          <Field label="Access key (Bedrock)"><input name="access_key" type="password" autoComplete="off" /></Field>
        </div>
      </details>
    </>
  );
}

/** Asks the provider, and says what it answered; nothing is stored. */
function Check({ of, ask, label = "Check" }: { of: RefObject<HTMLElement | null>; ask: (fields: FormData) => Promise<Checked>; label?: string }) {
  const action = useAction();
  const [sentence, setSentence] = useState("");
  return (
    <div className="check">
      <button
        type="button"
        aria-disabled={action.isBusy}
        onClick={() => {
          setSentence("");
          const form = of.current?.closest("form");
          void action.run(async () => setSentence((await ask(new FormData(form ?? undefined))).message));
        }}
      >
        {action.isBusy ? "Asking ..." : label}
      </button>
      <span role="status" className="ok-text small">{sentence}</span>
      {action.problem && <ProblemBox title="The check failed" problem={action.problem} />}
    </div>
  );
}

export function ProviderDetail({ provider }: { provider: Provider }) {
  const isOwn = provider.provider_category === "byok";
  const role = useRefusal("own");
  const refusal = role ?? (isOwn ? null : "The operator set it up, in the environment of Loci.");
  const action = useAction();
  const box = useRef<HTMLDivElement>(null);
  const queries = useQueryClient();
  return (
    <article className="detail" aria-label="Provider">
      <header className="detail-head">
        <h2 className="cut">{provider.name}</h2>
        <button
          type="button"
          disabled={role !== null}
          title={role ?? undefined}
          onClick={() => void action.run(async () => {
            await api().patch(`/v1/providers/${provider.id}/refresh`, { maxRetries: 0 });
            await queries.invalidateQueries();
          })}
        >
          List its models again
        </button>
        <AskButton
          question="Delete it? Agents of its models stop."
          refusal={refusal}
          act={() => action.run(async () => {
            await api().delete(`/v1/providers/${provider.id}`);
            await queries.invalidateQueries();
            navigate("/models");
          })}
        >
          Delete
        </AskButton>
      </header>
      <p className="muted small">
        {provider.provider_type} · {provider.has_key ? "has a key" : "has no key"}
        {provider.base_url ? ` · ${provider.base_url}` : ""}
        {provider.last_synced ? ` · listed ${ago(provider.last_synced)}` : ""}
      </p>
      {provider.sync_error && (
        <div className="problem-note" role="note"><strong>It could not be asked for its models.</strong> {provider.sync_error}</div>
      )}
      {action.problem && <ProblemBox title="It did not work" problem={action.problem} />}
      <div ref={box}>
        {role === null && <Check of={box} label="Check its key" ask={() => api().post<Checked>(`/v1/providers/${provider.id}/check`, { maxRetries: 0 })} />}
      </div>
      {refusal === null && <Change provider={provider} />}
      <h3>Models</h3>
      <AllModels providerName={provider.name} />
    </article>
  );
}

function Change({ provider }: { provider: Provider }) {
  const action = useAction();
  const queries = useQueryClient();
  return (
    <details>
      <summary>Change it</summary>
      <DraftForm
        name={`provider-${provider.id}`}
        className="form plain-form"
        action={action}
        failure="Could not change the provider"
        send={async (fields) => {
          // Its version: a change that somebody else made meanwhile is not overwritten.
          const body = { ...providerOf(fields), version: provider.version };
          await api().patch(`/v1/providers/${provider.id}`, { body, maxRetries: 0 });
          await queries.invalidateQueries();
          toast("Saved");
        }}
      >
        <Field label="Name"><input name="name" required defaultValue={provider.name} /></Field>
        <Field label="A new key" note="Left empty, the key stays. A new address needs a new key."><input name="api_key" type="password" autoComplete="off" /></Field>
        <Connection provider={provider} />
        <div className="form-end"><button type="submit" className="primary" aria-disabled={action.isBusy}>Save</button></div>
      </DraftForm>
    </details>
  );
}
