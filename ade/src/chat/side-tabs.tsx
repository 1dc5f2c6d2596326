import { type ComponentType, lazy, type LazyExoticComponent } from "react";
import type { KeyboardEvent } from "react";
import { navigate } from "../router";
import { chatPath, type Place } from "./place";

type Pane = ComponentType<{ place: Place }> | LazyExoticComponent<ComponentType<{ place: Place }>>;

/** The tabs beside the chat, by the names that addresses give them; the first is there without a name. */
export const TABS = {
  conversations: { label: "Chats", Pane: null },
  memory: { label: "Memory", Pane: lazy(async () => pane((await import("../memory/memory-pane")).MemoryPane)) },
  archive: { label: "Archive", Pane: lazy(async () => pane((await import("../archive/archive-pane")).ArchivePane)) },
  files: { label: "Files", Pane: lazy(async () => pane((await import("../files/files-pane")).FilesPane)) },
  tools: { label: "Tools", Pane: lazy(async () => pane((await import("../tools/agent-tools")).AgentTools)) },
  context: { label: "Context", Pane: lazy(async () => ({ default: (await import("../context/context-pane")).ContextPane })) },
  runs: { label: "Runs", Pane: lazy(async () => ({ default: (await import("../runs/agent-runs")).AgentRuns })) },
  time: { label: "Time", Pane: lazy(async () => ({ default: (await import("../time/time-pane")).TimePane })) },
  schedules: { label: "Schedules", Pane: lazy(async () => pane((await import("../schedules/schedules-pane")).SchedulesPane)) },
  settings: { label: "Settings", Pane: lazy(async () => pane((await import("../agents/settings-pane")).SettingsPane)) },
} satisfies Record<string, { label: string; Pane: Pane | null }>;

export type Tab = keyof typeof TABS;
const NAMES = Object.keys(TABS) as Tab[];

/** Most panes are the agent's, whatever conversation is open. */
function pane(Inner: ComponentType<{ agentId: string }>): { default: ComponentType<{ place: Place }> } {
  return { default: ({ place }) => <Inner agentId={place.agentId} /> };
}

export function isTab(name: string | undefined): name is Tab {
  return name !== undefined && name in TABS;
}

export function SideTabs({ place, tab }: { place: Place; tab: Tab }) {
  const go = (name: Tab): void => navigate(chatPath(place) + (name === "conversations" ? "" : `/${name}`));
  const move = (event: KeyboardEvent): void => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (by === undefined) return;
    const next = NAMES[(NAMES.indexOf(tab) + by + NAMES.length) % NAMES.length];
    if (!next) return;
    event.preventDefault();
    go(next);
    document.getElementById(`tab-${next}`)?.focus();
  };
  return (
    <div className="side-tabs" role="tablist" tabIndex={-1} aria-label="Beside the chat" onKeyDown={move}>
      {NAMES.map((name) => (
        <button
          key={name}
          type="button"
          role="tab"
          id={`tab-${name}`}
          aria-selected={tab === name}
          aria-controls="side-panel"
          onClick={() => go(name)}
        >
          {TABS[name].label}
        </button>
      ))}
    </div>
  );
}
