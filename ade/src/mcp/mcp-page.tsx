import { Plus } from "lucide-react";
import type { ReactNode } from "react";
import { Link } from "wouter";
import { useRefusal } from "../shell/access-gate";
import { Loaded } from "../ui/loaded";
import { RowLink } from "../ui/row-link";
import { Split } from "../ui/split";
import { NewServer } from "./new-server";
import { ServerDetail } from "./server-detail";
import { type Server, useServers } from "./servers";

const STATES: Record<string, string> = { oauth_required: "Needs you", failed: "Failed" };

/** Servers of tools. */
export default function McpPage({ serverId }: { serverId: string | null }) {
  const servers = useServers();
  const refusal = useRefusal("write");
  const open = servers.data?.find((each) => each.id === serverId);
  const detail = (): ReactNode => {
    if (serverId === "new") return <NewServer />;
    if (!serverId || servers.isPending) return null;
    return open ? <ServerDetail key={open.id} server={open} /> : <p className="empty">There is no such server.</p>;
  };
  const inside = <><Plus aria-hidden size={16} /> New server</>;
  return (
    <Split
      title="MCP servers"
      to="/mcp"
      hint="Choose a server, or add one. Agents call its tools."
      head={
        <>
          <title>MCP servers · Loci</title>
          <span className="spacer" />
          {refusal ? (
            <button type="button" className="primary" disabled title={refusal}>{inside}</button>
          ) : (
            <Link className="button primary" href="/mcp/new">{inside}</Link>
          )}
        </>
      }
      list={
        <Loaded query={servers} what="the servers">
          {(all) => (
            <ul className="rows">
              {all.map((server) => (
                <RowLink
                  key={server.id}
                  to={`/mcp/${server.id}`}
                  isOpen={server.id === serverId}
                  title={server.server_name}
                  note={addressOf(server)}
                  end={STATES[server.status ?? ""] && <span className="status waiting">{STATES[server.status ?? ""]}</span>}
                />
              ))}
              {all.length === 0 && <li className="empty">No server yet. Add one by its address.</li>}
            </ul>
          )}
        </Loaded>
      }
      detail={detail()}
    />
  );
}

function addressOf(server: Server): string {
  return server.server_url ?? [server.command, ...(server.args ?? [])].join(" ");
}
