import { ArrowUp, X } from "lucide-react";
import { type KeyboardEvent, useDeferredValue, useState } from "react";
import { Link } from "wouter";
import { useAgents } from "../agents/queries";
import { useCaller } from "../shell/access-gate";
import { IconButton } from "./icon-button";

/** An agent that was chosen. */
export interface Chosen {
  id: string;
  name: string;
}

interface Props {
  label: string;
  note?: string;
  /** By which a form knows the ids of those that are chosen. */
  name: string;
  chosen: readonly Chosen[];
  choose: (chosen: Chosen[]) => void;
  /** Whether one is all that may be chosen. */
  isSingle?: boolean;
  /** Whether their order means something. */
  isOrdered?: boolean;
}

const MOST = 6;

/** Chooses agents by their names, however many there are. */
export function AgentPicker({ label, note, name, chosen, choose, isSingle = false, isOrdered = false }: Props) {
  const [text, setText] = useState("");
  const agents = useAgents(useCaller(), useDeferredValue(text.trim()), "");
  const known = new Set(chosen.map(({ id }) => id));
  const found = text ? (agents.data?.pages.flat() ?? []).filter(({ id }) => !known.has(id)).slice(0, MOST) : [];
  const add = ({ id, name: called }: Chosen): void => {
    choose([...(isSingle ? [] : chosen), { id, name: called }]);
    setText("");
  };
  const press = (event: KeyboardEvent): void => {
    if (event.key !== "Enter") return;
    // It would send the form.
    event.preventDefault();
    if (found[0]) add(found[0]);
  };
  return (
    <div className="picker" role="group" aria-label={label}>
      <span>{label}</span>
      {chosen.length > 0 && (
        <ol className="chosen">
          {chosen.map((agent, at) => (
            <li key={agent.id}>
              <input type="hidden" name={name} value={agent.id} />
              <Link href={`/agents/${agent.id}`} className="cut">{agent.name}</Link>
              <span className="row-actions">
                {isOrdered && at > 0 && <IconButton label={`Move ${agent.name} up`} icon={ArrowUp} onClick={() => choose(movedUp(chosen, at))} />}
                <IconButton label={`Remove ${agent.name}`} icon={X} onClick={() => choose(chosen.filter((each) => each !== agent))} />
              </span>
            </li>
          ))}
        </ol>
      )}
      <input
        type="search"
        autoComplete="off"
        aria-label={`${label}: find an agent`}
        placeholder="Find an agent by its name"
        value={text}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={press}
      />
      {text && (
        <ul className="found" aria-label="Agents found">
          {found.map((agent) => <li key={agent.id}><button type="button" className="quiet" onClick={() => add(agent)}>Add {agent.name}</button></li>)}
          {agents.isSuccess && found.length === 0 && <li className="muted small">No other agent has this name.</li>}
        </ul>
      )}
      {note && <span className="muted small">{note}</span>}
    </div>
  );
}

function movedUp(chosen: readonly Chosen[], at: number): Chosen[] {
  const moved = chosen[at];
  const rest = chosen.filter((_, each) => each !== at);
  return moved ? [...rest.slice(0, at - 1), moved, ...rest.slice(at - 1)] : [...chosen];
}
