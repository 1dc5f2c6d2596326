import { useQueryClient } from "@tanstack/react-query";
import { api } from "../api/client";
import { navigate } from "../router";
import { DraftForm } from "../ui/draft-form";
import { textOf } from "../ui/field";
import { useAction } from "../ui/use-action";
import { ServerFields } from "./server-fields";
import { configOf } from "./servers";

/** A form for a server. It is stored even if it does not answer, so that nothing typed is lost. */
export function NewServer() {
  const action = useAction();
  const queries = useQueryClient();
  return (
    <DraftForm
      name="mcp-server"
      action={action}
      failure="Could not add the server"
      send={async (fields) => {
        const body = { server_name: textOf(fields, "name"), config: configOf(fields) };
        const made = (await api().mcpServers.create(body as never, { maxRetries: 0 })) as unknown as { id: string };
        await queries.invalidateQueries({ queryKey: ["mcp-servers"] });
        navigate(`/mcp/${made.id}`);
      }}
    >
      <h2>New MCP server</h2>
      <ServerFields server={null} />
      <div className="form-end"><button type="submit" className="primary" aria-disabled={action.isBusy}>{action.isBusy ? "Connecting ..." : "Add server"}</button></div>
    </DraftForm>
  );
}
