import { useSearch } from "wouter";
import { useAgents } from "../agents/queries";
import { navigate } from "../router";
import { useCaller } from "../shell/access-gate";
import { PANE } from "../shell/panes";
import { DataTable } from "../ui/data-table";
import { Loaded } from "../ui/loaded";
import { dollars, percent, whole } from "../ui/numbers";
import { Budgets } from "./budgets";
import { Chart } from "./chart";
import { barsOf, type Group, GROUPS, type Measure, OTHERS, type Report, SPANS, sumsOf, useReport } from "./usage";

const MEASURES: Record<Measure, string> = { cost_usd: "Dollars", total_tokens: "Tokens", requests: "Model calls" };
const NUMBERS = ["Cost", "Tokens in", "Cached", "Tokens out", "Calls"];

/** What models cost: over time, by model, agent or provider, and what may be spent. */
export default function UsagePage() {
  const query = new URLSearchParams(useSearch());
  const span = query.get("span") ?? "week";
  const group = GROUPS.find((each) => each === query.get("by")) ?? "model";
  const measure = (query.get("in") ?? "total_tokens") as Measure;
  const report = useReport(span, group);
  const choose = (name: string, value: string): void => {
    query.set(name, value);
    navigate(`/usage?${query.toString()}`, { replace: true });
  };
  return (
    <main className="page usage-page" {...PANE}>
      <title>Usage · Loci</title>
      <header className="bar">
        <h1>Usage</h1>
        <select aria-label="Span of time" value={span} onChange={(event) => choose("span", event.target.value)}>
          {Object.entries(SPANS).map(([name, each]) => <option key={name} value={name}>{each.label}</option>)}
        </select>
        <select aria-label="Sum up by" value={group} onChange={(event) => choose("by", event.target.value)}>
          {GROUPS.map((each) => <option key={each} value={each}>by {each}</option>)}
        </select>
        <select aria-label="Measured in" value={measure} onChange={(event) => choose("in", event.target.value)}>
          {Object.entries(MEASURES).map(([name, label]) => <option key={name} value={name}>{label}</option>)}
        </select>
      </header>
      <div className="usage-body">
        <Loaded query={report} what="the usage">
          {({ report: data, times }) => <Figures report={data} times={times} group={group} measure={measure} isHours={SPANS[span]?.unit === "hour"} />}
        </Loaded>
        <Budgets />
      </div>
    </main>
  );
}

interface Props {
  report: Report;
  times: string[];
  group: Group;
  measure: Measure;
  isHours: boolean;
}

function Figures({ report, times, group, measure, isHours }: Props) {
  const { totals, rows } = report;
  const agents = useAgents(useCaller(), "", "");
  const names = new Map(agents.data?.pages.flat().map((each) => [each.id, each.name]));
  const named = (name: string): string => (group === "agent" ? (names.get(name) ?? name) : name);
  const { bars, groups } = barsOf(rows, times, group, measure);
  const sums = sumsOf(rows, group);
  const colourOf = (name: string): number => groups.indexOf(groups.includes(name) ? name : OTHERS);
  if (!totals.requests) return <p className="empty">No model was called in this time. Write to an agent, or choose a longer span above.</p>;
  return (
    <>
      <dl className="figures">
        <div><dt>Cost</dt><dd>{dollars(totals.cost_usd)}</dd></div>
        <div><dt>Tokens in</dt><dd>{whole(totals.prompt_tokens)}</dd></div>
        <div><dt>of them cached</dt><dd>{percent(totals.cached_input_tokens, totals.prompt_tokens)}</dd></div>
        <div><dt>Tokens out</dt><dd>{whole(totals.completion_tokens)}</dd></div>
        <div><dt>Model calls</dt><dd>{whole(totals.requests)}</dd></div>
      </dl>
      {totals.unpriced_requests > 0 && <p className="waiting-text small">{whole(totals.unpriced_requests)} calls without a price count as nothing.</p>}
      <Chart bars={bars} groups={groups} measure={measure} isHours={isHours} />
      <DataTable
        label="Usage in numbers"
        columns={[{ name: `${group.slice(0, 1).toUpperCase()}${group.slice(1)}` }, ...NUMBERS.map((name) => ({ name, isNumber: true }))]}
        rows={sums.map((sum) => ({
          key: sum.name,
          cells: [
            <><span className={`swatch group-${colourOf(sum.name)}`} aria-hidden /> {named(sum.name)}</>,
            dollars(sum.cost_usd),
            whole(sum.prompt_tokens),
            percent(sum.cached_input_tokens, sum.prompt_tokens),
            whole(sum.completion_tokens),
            whole(sum.requests),
          ],
        }))}
      />
      {report.truncated && <p className="waiting-text small">There are more rows than one answer holds: choose a shorter span.</p>}
    </>
  );
}
