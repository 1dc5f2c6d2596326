import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api } from "../api/client";
import { useRefusal } from "../shell/access-gate";
import { AskButton } from "../ui/ask-button";
import { DraftForm } from "../ui/draft-form";
import { Field } from "../ui/field";
import { Loaded } from "../ui/loaded";
import { dollars, whole } from "../ui/numbers";
import { ProblemBox } from "../ui/problem-box";
import { useAction } from "../ui/use-action";
import { type Budget, limitsOf, PERIODS, useBudgets } from "./usage";

/** What may be spent in a time, and how much of it has been. */
export function Budgets() {
  const budgets = useBudgets();
  const refusal = useRefusal("own");
  return (
    <section className="budgets" aria-label="Budgets">
      <h2>Budgets</h2>
      <p className="muted small">A call beyond one is refused before the provider is asked. Times are UTC's.</p>
      <Loaded query={budgets} what="the budgets">
        {(all) => (
          <ul className="rows">
            {all.map((budget) => <BudgetRow key={`${budget.period} ${budget.operators}`} budget={budget} refusal={refusal} />)}
            {all.length === 0 && <li className="empty">No budget: nothing limits what agents spend.</li>}
          </ul>
        )}
      </Loaded>
      <NewBudget refusal={refusal} />
    </section>
  );
}

function BudgetRow({ budget, refusal }: { budget: Budget; refusal: string | null }) {
  const action = useAction();
  const queries = useQueryClient();
  const { limits, spent } = budget;
  const lines = [
    { name: "dollars", most: limits.usd, now: spent.usd, words: dollars, unit: "" },
    { name: "tokens", most: limits.tokens, now: spent.tokens, words: whole, unit: " tokens" },
    { name: "calls", most: limits.requests, now: spent.requests, words: whole, unit: " calls" },
  ];
  return (
    <li className="file">
      <div className="file-line">
        <strong>A {budget.period}</strong>
        <span className="muted small">{budget.operators ? "the operator's" : "yours"}{budget.resets_at ? ` · begins anew ${new Date(budget.resets_at).toLocaleString("en")}` : ""}</span>
        <span className="spacer" />
        {!budget.operators && (
          <AskButton
            question="Remove this budget?"
            yes="Remove"
            refusal={refusal}
            act={() => action.run(async () => {
              await api().delete(`/v1/budgets/${budget.period}`);
              await queries.invalidateQueries({ queryKey: ["budgets"] });
            })}
          >
            Remove
          </AskButton>
        )}
      </div>
      {lines.map(({ name, most, now, words, unit }) =>
        most === null ? null : (
          <div key={name} className="file-line small">
            <meter aria-label={`Spent ${name} of a ${budget.period}`} min={0} max={most || 1} high={most * 0.8} value={Math.min(now, most)} />
            <span>{words(now)} of {words(most)}{unit}{now >= most ? ": spent" : ""}</span>
          </div>
        ),
      )}
      {action.problem && <ProblemBox title="Could not remove it" problem={action.problem} />}
    </li>
  );
}

function NewBudget({ refusal }: { refusal: string | null }) {
  const [isOpen, setOpen] = useState(false);
  const action = useAction();
  const queries = useQueryClient();
  if (!isOpen) {
    return <button type="button" disabled={refusal !== null} title={refusal ?? undefined} onClick={() => setOpen(true)}>Set a budget</button>;
  }
  return (
    <DraftForm
      name="budget"
      className="form plain-form"
      label="Budget"
      action={action}
      failure="Could not set the budget"
      send={async (fields) => {
        await api().put(`/v1/budgets/${String(fields.get("period"))}`, { body: limitsOf(fields), maxRetries: 0 });
        await queries.invalidateQueries({ queryKey: ["budgets"] });
        setOpen(false);
      }}
    >
      <Field label="For a" note="It replaces yours of this time.">
        <select name="period" defaultValue="day">{PERIODS.map((each) => <option key={each}>{each}</option>)}</select>
      </Field>
      <Field label="Dollars"><input name="usd" type="number" min={0} step="any" /></Field>
      <Field label="Tokens"><input name="tokens" type="number" min={0} /></Field>
      <Field label="Model calls"><input name="requests" type="number" min={0} /></Field>
      <div className="form-end">
        <button type="button" onClick={() => setOpen(false)}>Cancel</button>
        <button type="submit" className="primary">Set</button>
      </div>
    </DraftForm>
  );
}
