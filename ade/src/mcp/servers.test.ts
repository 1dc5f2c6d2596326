import { expect, test } from "vitest";
import { configOf, headersOf, linesOf, wordsOf } from "./servers";

function form(fields: Record<string, string>): FormData {
  const data = new FormData();
  for (const [name, value] of Object.entries(fields)) data.append(name, value);
  return data;
}

test("a server on the web", () => {
  expect(configOf(form({ type: "sse", url: " https://mcp.example.com/sse ", token: "t", headers: "X-Team: shop:1" }))).toEqual({
    mcp_server_type: "sse",
    server_url: "https://mcp.example.com/sse",
    auth_header: "Authorization",
    auth_token: "t",
    custom_headers: { "X-Team": "shop:1" },
  });
  expect(configOf(form({ type: "streamable_http", url: "https://mcp.example.com" }))).toEqual({
    mcp_server_type: "streamable_http",
    server_url: "https://mcp.example.com",
    custom_headers: {},
  });
});

test("what is stored becomes lines that are read again", () => {
  const headers = { "X-Team": "shop:1" };
  expect(headersOf(linesOf(headers, ": "))).toEqual(headers);
  expect(linesOf(null, "=")).toBe("");
});

test("a program", () => {
  expect(configOf(form({ type: "stdio", command: "npx", args: "-y\n@acme/mcp", env: "KEY=a=b" }))).toEqual({
    mcp_server_type: "stdio",
    command: "npx",
    args: ["-y", "@acme/mcp"],
    env: { KEY: "a=b" },
  });
});

test("a line that is no header says how one is written", () => {
  expect(() => headersOf("X-Team")).toThrow("Write Name: value");
});

test("a refresh says what changed", () => {
  expect(wordsOf({ added: ["a"], updated: [], deleted: ["b", "c"] })).toBe("new: a; gone: b, c");
  expect(wordsOf({ added: [], updated: [], deleted: [] })).toBe("Nothing changed.");
});
