// Loaded by NODE_OPTIONS before a program of an MCP server: its requests go to the sandbox's proxy.

require("./network.cjs").useProxyInProgram(process.env);
