import { useQueryClient } from "@tanstack/react-query";
import { Plus } from "lucide-react";
import type { ReactNode } from "react";
import { Link } from "wouter";
import { api } from "../api/client";
import { navigate } from "../router";
import { useRefusal } from "../shell/access-gate";
import { Loaded } from "../ui/loaded";
import { RowLink } from "../ui/row-link";
import { Split } from "../ui/split";
import { useAction } from "../ui/use-action";
import { GroupDetail } from "./group-detail";
import { GroupForm } from "./group-form";
import { type Group, kindWords, useGroups } from "./groups";

/** Groups of agents. */
export default function GroupsPage({ groupId }: { groupId: string | null }) {
  const groups = useGroups();
  const refusal = useRefusal("write");
  const open = groups.data?.find((each) => each.id === groupId);
  const detail = (): ReactNode => {
    if (groupId === "new") return <NewGroup />;
    if (!groupId || groups.isPending) return null;
    return open ? <GroupDetail key={open.id} group={open} /> : <p className="empty">There is no such group.</p>;
  };
  const inside = <><Plus aria-hidden size={16} /> New group</>;
  return (
    <Split
      title="Groups"
      to="/groups"
      hint="Choose a group, or make one of agents that belong together."
      head={
        <>
          <title>Groups · Loci</title>
          <span className="spacer" />
          {refusal ? (
            <button type="button" className="primary" disabled title={refusal}>{inside}</button>
          ) : (
            <Link className="button primary" href="/groups/new">{inside}</Link>
          )}
        </>
      }
      list={
        <Loaded query={groups} what="the groups">
          {(all) => (
            <ul className="rows">
              {all.map((group) => (
                <RowLink key={group.id} to={`/groups/${group.id}`} isOpen={group.id === groupId} title={group.description || "Group"} note={noteOf(group)} />
              ))}
              {all.length === 0 && <li className="empty">There are no groups yet. One shares blocks among its agents.</li>}
            </ul>
          )}
        </Loaded>
      }
      detail={detail()}
    />
  );
}

function noteOf(group: Group): string {
  return `${kindWords(group.manager_type)} · ${group.agent_ids.length} ${group.agent_ids.length === 1 ? "agent" : "agents"}`;
}

function NewGroup() {
  const action = useAction();
  const queries = useQueryClient();
  return (
    <GroupForm
      group={null}
      action={action}
      send={async (body) => {
        const made = await api().post<Group>("/v1/groups/", { body, maxRetries: 0 });
        await queries.invalidateQueries({ queryKey: ["groups"] });
        navigate(`/groups/${made.id}`);
      }}
    />
  );
}
