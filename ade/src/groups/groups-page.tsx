import { useQueryClient } from "@tanstack/react-query";
import { api } from "../api/client";
import { navigate } from "../router";
import { useRefusal } from "../shell/access-gate";
import { ListScreen } from "../ui/list-screen";
import { useAction } from "../ui/use-action";
import { GroupDetail } from "./group-detail";
import { GroupForm } from "./group-form";
import { type Group, kindWords, useGroups } from "./groups";

/** Groups of agents. */
export default function GroupsPage({ groupId }: { groupId: string | null }) {
  return (
    <ListScreen
      title="Groups"
      noun="group"
      to="/groups"
      open={groupId}
      query={useGroups()}
      refusal={useRefusal("write")}
      row={(group) => ({ title: group.description || "Group", note: noteOf(group) })}
      renderDetail={(group) => <GroupDetail key={group.id} group={group} />}
      pages={{ new: <NewGroup /> }}
      hint="Choose a group, or make one of agents that belong together."
      empty="There are no groups yet. One shares blocks among its agents."
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
