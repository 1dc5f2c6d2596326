import { useRefusal } from "../shell/access-gate";
import { ListScreen } from "../ui/list-screen";
import { NewServer } from "./new-server";
import { ServerDetail } from "./server-detail";
import { type Server, useServers } from "./servers";

const STATES: Record<string, string> = { oauth_required: "Needs you", failed: "Failed" };

/** Servers of tools. */
export default function McpPage({ serverId }: { serverId: string | null }) {
  return (
    <ListScreen
      title="MCP servers"
      noun="server"
      to="/mcp"
      open={serverId}
      query={useServers()}
      refusal={useRefusal("write")}
      row={(server) => ({ title: server.server_name, note: addressOf(server), end: <State server={server} /> })}
      renderDetail={(server) => <ServerDetail key={server.id} server={server} />}
      pages={{ new: <NewServer /> }}
      hint="Choose a server, or add one. Agents call its tools."
      empty="No server yet. Add one by its address."
    />
  );
}

function State({ server }: { server: Server }) {
  const state = STATES[server.status ?? ""];
  return state ? <span className="status waiting">{state}</span> : null;
}

function addressOf(server: Server): string {
  return server.server_url ?? [server.command, ...(server.args ?? [])].join(" ");
}
