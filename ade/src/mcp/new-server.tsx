import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api } from "../api/client";
import { navigate } from "../router";
import { DraftForm } from "../ui/draft-form";
import { Field, textOf } from "../ui/field";
import { useAction } from "../ui/use-action";
import { configOf, type ServerType } from "./servers";

const TYPES: [ServerType, string][] = [
  ["streamable_http", "On the web (streamable HTTP)"],
  ["sse", "On the web (server-sent events)"],
  ["stdio", "A program (stdio), in the sandbox"],
];

/** A form for a server. It is stored even if it does not answer, so that nothing typed is lost. */
export function NewServer() {
  const [type, setType] = useState<ServerType>("streamable_http");
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
      <Field label="Name"><input name="name" required maxLength={100} /></Field>
      <Field label="Kind">
        <select name="type" value={type} onChange={(event) => setType(event.target.value as ServerType)}>
          {TYPES.map(([value, label]) => <option key={value} value={value}>{label}</option>)}
        </select>
      </Field>
      {type === "stdio" ? (
        <>
          <Field label="Command" note="npx, uvx, or a program of the sandbox."><input name="command" required /></Field>
          <Field label="Arguments" note="One a line."><textarea name="args" className="code" rows={3} /></Field>
          <Field label="Variables" note="One a line: NAME=value."><textarea name="env" className="code" rows={2} autoComplete="off" /></Field>
        </>
      ) : (
        <>
          <Field label="Address"><input name="url" type="url" required placeholder="https://mcp.example.com/mcp" /></Field>
          <Field label="Token" note="Only if the server asks for one that you have. Otherwise you sign in after it was added.">
            <input name="token" type="password" autoComplete="off" />
          </Field>
          <Field label="Other headers" note="One a line, such as X-Team: shop."><textarea name="headers" className="code" rows={2} /></Field>
        </>
      )}
      <div className="form-end"><button type="submit" className="primary" aria-disabled={action.isBusy}>{action.isBusy ? "Connecting ..." : "Add server"}</button></div>
    </DraftForm>
  );
}
