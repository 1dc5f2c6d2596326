import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import { api } from "../api/client";
import { navigate } from "../router";
import { useRefusal } from "../shell/access-gate";
import { toast } from "../shell/toasts";
import { AskButton } from "../ui/ask-button";
import { DraftForm } from "../ui/draft-form";
import { textOf } from "../ui/field";
import { Loaded } from "../ui/loaded";
import { ProblemBox } from "../ui/problem-box";
import { ago } from "../ui/time";
import { useAction } from "../ui/use-action";
import { Connect } from "./connect";
import { ServerFields } from "./server-fields";
import { type Changes, configOf, type Server, useServerTools, wordsOf } from "./servers";

/** One server: how it is reached, whether it answers, and its tools. */
export function ServerDetail({ server }: { server: Server }) {
  const refusal = useRefusal("write");
  const tools = useServerTools(server.id);
  const action = useAction();
  const queries = useQueryClient();
  const [sentence, setSentence] = useState("");
  const renew = (): Promise<unknown> =>
    Promise.all([["mcp-servers"], ["mcp-tools", server.id], ["tools"]].map((queryKey) => queries.invalidateQueries({ queryKey })));
  const refresh = (): Promise<boolean> =>
    action.run(async () => {
      try {
        setSentence(wordsOf((await api().mcpServers.refresh(server.id, {}, { maxRetries: 0 })) as Changes));
      } finally {
        await renew();
      }
    });
  const address = server.server_url ?? [server.command, ...(server.args ?? [])].join(" ");
  return (
    <article className="detail" aria-label="MCP server">
      <header className="detail-head">
        <h2 className="cut">{server.server_name}</h2>
        <button type="button" disabled={refusal !== null} title={refusal ?? undefined} aria-disabled={action.isBusy} onClick={() => void refresh()}>
          {action.isBusy ? "Reading ..." : "Read its tools again"}
        </button>
        <AskButton
          question="Delete it? Agents lose its tools."
          refusal={refusal}
          act={() => action.run(async () => {
            await api().mcpServers.delete(server.id);
            await renew();
            navigate("/mcp");
          })}
        >
          Delete
        </AskButton>
      </header>
      <p className="small plain"><code>{address}</code></p>
      {server.problem && (
        <div className="problem-note" role="note">
          <p><strong>{server.status === "oauth_required" ? "It asks you to sign in." : "It did not answer last time."}</strong> {server.problem}</p>
          {server.synced_at && <p className="muted small">Its tools are those of {ago(server.synced_at)}.</p>}
        </div>
      )}
      {server.mcp_server_type !== "stdio" && refusal === null && <Connect serverId={server.id} isNeeded={server.status === "oauth_required"} done={renew} />}
      {action.problem && <ProblemBox title="It did not work" problem={action.problem} />}
      <p role="status" className="small">{sentence}</p>
      {refusal === null && <Change server={server} done={renew} />}
      <h3>Tools</h3>
      <Loaded query={tools} what="its tools">
        {(all) => (
          <ul className="rows">
            {all.map((tool) => (
              <li key={tool.id} className="file">
                <Link href={`/tools/${tool.id}?kind=mcp`}><code>{tool.name}</code></Link>
                <p className="muted small">{tool.description}</p>
              </li>
            ))}
            {all.length === 0 && <li className="muted small">None could be read yet.</li>}
          </ul>
        )}
      </Loaded>
      {server.tool_problems && server.tool_problems.length > 0 && (
        <>
          <h3>Left out</h3>
          <ul className="rows">
            {server.tool_problems.map((each) => <li key={each.name} className="small"><code>{each.name}</code>: {each.problem}</li>)}
          </ul>
        </>
      )}
    </article>
  );
}

function Change({ server, done }: { server: Server; done: () => Promise<unknown> }) {
  const action = useAction();
  return (
    <details>
      <summary>Change it</summary>
      <DraftForm
        name={`mcp-${server.id}`}
        className="form plain-form"
        action={action}
        failure="Could not change the server"
        send={async (fields) => {
          const body = { server_name: textOf(fields, "name"), config: configOf(fields) };
          await api().mcpServers.update(server.id, body as never, { maxRetries: 0 });
          await done();
          toast("Saved. Read its tools again to see what it offers now.");
        }}
      >
        <ServerFields server={server} />
        <div className="form-end"><button type="submit" className="primary" aria-disabled={action.isBusy}>Save</button></div>
      </DraftForm>
    </details>
  );
}
