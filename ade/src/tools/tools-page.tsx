import { lazy, Suspense, useDeferredValue, useState } from "react";
import { useSearch } from "wouter";
import { navigate } from "../router";
import { useRefusal } from "../shell/access-gate";
import { Loaded } from "../ui/loaded";
import { NewButton } from "../ui/new-button";
import { RowLink } from "../ui/row-link";
import { Split } from "../ui/split";
import { type Kind, KINDS, useTool, useTools } from "./tools";

const ToolEditor = lazy(() => import("./tool-editor"));

/** The catalogue of tools, and an editor for one. */
export default function ToolsPage({ toolId }: { toolId: string | null }) {
  const query = new URLSearchParams(useSearch());
  const kind = (Object.keys(KINDS) as Kind[]).find((each) => each === query.get("kind")) ?? "all";
  const [search, setSearch] = useState("");
  const tools = useTools(useDeferredValue(search.trim()), kind);
  const refusal = useRefusal("write");
  const suffix = kind === "all" ? "" : `?kind=${kind}`;
  return (
    <Split
      title="Tools"
      to={`/tools${suffix}`}
      hint="Choose a tool to read, change or try it."
      head={
        <>
          <input type="search" className="narrow-search" aria-label="Search tools" placeholder="Search" value={search} onChange={(event) => setSearch(event.target.value)} />
          <select aria-label="Only tools of the kind" value={kind} onChange={(event) => navigate(`/tools?kind=${event.target.value}`, { replace: true })}>
            {Object.entries(KINDS).map(([name, { label }]) => <option key={name} value={name}>{label}</option>)}
          </select>
          <span className="spacer" />
          <NewButton to="/tools/new" label="New tool" refusal={refusal} />
        </>
      }
      list={
        <Loaded query={tools} what="the tools">
          {(all) => (
            <ul className="rows">
              {all.map((tool) => (
                <RowLink
                  key={tool.id}
                  to={`/tools/${tool.id}${suffix}`}
                  isOpen={tool.id === toolId}
                  title={<code>{tool.name}</code>}
                  note={tool.description}
                />
              ))}
              {all.length === 0 && <li className="empty">{search ? "No tool fits." : "There is no tool of this kind yet."}</li>}
            </ul>
          )}
        </Loaded>
      }
      detail={toolId ? <Suspense fallback={null}><Open key={toolId} toolId={toolId} /></Suspense> : null}
    />
  );
}

function Open({ toolId }: { toolId: string }) {
  const tool = useTool(toolId === "new" ? null : toolId);
  if (toolId === "new") return <ToolEditor tool={null} />;
  return <Loaded query={tool} what="the tool">{(data) => <ToolEditor key={data.id} tool={data} />}</Loaded>;
}
