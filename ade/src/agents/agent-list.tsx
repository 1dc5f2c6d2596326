import { useVirtualizer } from "@tanstack/react-virtual";
import { Hand, OctagonAlert } from "lucide-react";
import { type KeyboardEvent, useEffect, useRef } from "react";
import { Link } from "wouter";
import { ago } from "../ui/time";
import { AgentMenu } from "./agent-menu";
import { type Agent, hasFailed } from "./queries";

const ROW = 44;

interface Props {
  rows: Agent[];
  /** Asks for the next page, if there is one. */
  more: () => void;
}

/** Rows of agents, of which only those in view are drawn. */
export function AgentList({ rows, more }: Props) {
  const scroller = useRef<HTMLDivElement>(null);
  const list = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW,
    getItemKey: (at) => rows[at]?.id ?? at,
    overscan: 12,
  });
  const items = list.getVirtualItems();
  const last = items.at(-1)?.index ?? 0;
  useEffect(() => {
    if (last >= rows.length - 20) more();
  }, [last, rows.length, more]);

  return (
    <>
      <div className="agent-row agent-head muted small" aria-hidden>
        <span>Name</span><span>Model</span><span>Tags</span><span>Last answer</span><span />
      </div>
      {/* oxlint-disable-next-line jsx-a11y/no-static-element-interactions -- arrows move between the links within */}
      <div className="scroller" ref={scroller} onKeyDown={(event) => step(event, scroller.current)}>
        <ul className="agent-rows" style={{ height: list.getTotalSize() }}>
          {items.map((item) => {
            const agent = rows[item.index];
            return agent && <AgentRow key={item.key} agent={agent} top={item.start} />;
          })}
        </ul>
      </div>
    </>
  );
}

function AgentRow({ agent, top }: { agent: Agent; top: number }) {
  return (
    <li className="agent-row" style={{ transform: `translateY(${top}px)` }}>
      <Link href={`/agents/${agent.id}`} className="agent-link">
        <span className="agent-name">{agent.name}</span>
        <State agent={agent} />
      </Link>
      <span className="muted cut">{agent.model}</span>
      <span className="tags">{agent.tags?.map((tag) => <span className="tag" key={tag}>{tag}</span>)}</span>
      <span className="muted">{ago(agent.last_run_completion)}</span>
      <AgentMenu agent={agent} />
    </li>
  );
}

/** What a person should know at once; nothing where all is well. */
function State({ agent }: { agent: Agent }) {
  if (agent.pending_approval) return <span className="waiting-mark"><Hand aria-hidden size={14} /> Needs you</span>;
  if (hasFailed(agent)) return <span className="waiting-mark failed-mark"><OctagonAlert aria-hidden size={14} /> Failed</span>;
  return null;
}

const STEPS: Record<string, number> = { ArrowDown: 1, ArrowUp: -1, Home: -1e9, End: 1e9 };

/** Moves the focus between rows. */
function step(event: KeyboardEvent, scroller: HTMLElement | null): void {
  const by = STEPS[event.key];
  if (by === undefined || !scroller) return;
  const links = [...scroller.querySelectorAll<HTMLElement>(".agent-link")];
  const at = links.indexOf(document.activeElement as HTMLElement);
  if (at < 0) return;
  event.preventDefault();
  links[Math.min(Math.max(at + by, 0), links.length - 1)]?.focus();
}
