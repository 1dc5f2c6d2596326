import { useState } from "react";
import { Field } from "../ui/field";
import { linesOf, type Server, type ServerType } from "./servers";

const TYPES: [ServerType, string][] = [
  ["streamable_http", "On the web (streamable HTTP)"],
  ["sse", "On the web (server-sent events)"],
  ["stdio", "A program (stdio), in the sandbox"],
];

/** How a server is reached; of one that is stored, as it is. Secrets come back as they are shown: masked, they stay. */
export function ServerFields({ server }: { server: Server | null }) {
  const [type, setType] = useState<ServerType>(server?.mcp_server_type ?? "streamable_http");
  return (
    <>
      <Field label="Name"><input name="name" required maxLength={100} defaultValue={server?.server_name ?? ""} /></Field>
      <Field label="Kind">
        <select name="type" value={type} onChange={(event) => setType(event.target.value as ServerType)}>
          {TYPES.map(([value, label]) => <option key={value} value={value}>{label}</option>)}
        </select>
      </Field>
      {type === "stdio" ? (
        <>
          <Field label="Command" note="npx, uvx, or a program of the sandbox."><input name="command" required defaultValue={server?.command ?? ""} /></Field>
          <Field label="Arguments" note="One a line."><textarea name="args" className="code" rows={3} defaultValue={server?.args?.join("\n") ?? ""} /></Field>
          <Field label="Variables" note="One a line: NAME=value.">
            <textarea name="env" data-secret="" className="code" rows={2} autoComplete="off" defaultValue={linesOf(server?.env, "=")} />
          </Field>
        </>
      ) : (
        <>
          <Field label="Address"><input name="url" type="url" required placeholder="https://mcp.example.com/mcp" defaultValue={server?.server_url ?? ""} /></Field>
          <Field label="Token" note={server ? "Left empty, it stays." : "Only if the server asks for one that you have. Otherwise you sign in after it was added."}>
            <input name="token" type="password" autoComplete="off" />
          </Field>
          <Field label="Other headers" note="One a line, such as X-Team: shop.">
            <textarea name="headers" data-secret="" className="code" rows={2} defaultValue={linesOf(server?.custom_headers, ": ")} />
          </Field>
        </>
      )}
    </>
  );
}
