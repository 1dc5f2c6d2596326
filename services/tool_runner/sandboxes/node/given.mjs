// What tools are given beside their arguments: `agent_state`, an agent as its JSON has it, and `client`.

/** `value` is what the tool gets; undefined where the call has no state. */
export class State {
  constructor(text) {
    this.value = text ? agent(JSON.parse(text)) : undefined;
    this.before = this.values();
  }

  /** [[label, value]] of the blocks whose value is another than before. */
  edits() {
    const now = this.values();
    return [...this.before].filter(([label, old]) => now.has(label) && now.get(label) !== old).map(([label]) => [label, now.get(label)]);
  }

  values() {
    const blocks = this.value?.memory?.blocks ?? [];
    return new Map([...blocks].filter((block) => block?.label).map((block) => [block.label, String(block.value ?? "")]));
  }
}

// With its blocks under `memory` and at the top, the same ones, and with methods by both habits of naming.
function agent(fields) {
  const blocks = fields.memory?.blocks ?? fields.blocks ?? [];
  const getBlock = (label) => {
    const found = blocks.find((block) => block.label === label);
    if (found) return found;
    throw new Error(`there is no block ${label}; there are: ${blocks.map((block) => block.label).join(", ")}`);
  };
  const updateBlockValue = (label, value) => {
    if (typeof value !== "string") throw new TypeError("the value of a block must be a string");
    getBlock(label).value = value;
  };
  const methods = { getBlock, get_block: getBlock, updateBlockValue, update_block_value: updateBlockValue };
  fields.blocks = blocks;
  fields.memory = { ...fields.memory, blocks };
  for (const [name, value] of Object.entries(methods)) {
    Object.defineProperty(fields.memory, name, { value, enumerable: false });
  }
  return fields;
}

/** `client`, the Letta SDK's, made when it is first used. */
export function defineClient(modules) {
  let made;
  Object.defineProperty(globalThis, "client", {
    configurable: true,
    get: () => (made ??= newClient(modules)),
    set: (value) => Object.defineProperty(globalThis, "client", { value, writable: true, configurable: true }),
  });
}

function newClient(modules) {
  let sdk;
  try {
    sdk = modules.require("@letta-ai/letta-client");
  } catch {
    const missing = "`client` needs the package @letta-ai/letta-client, which is not in this sandbox";
    throw new Error(`${missing}: add it to the tool's npm_requirements`);
  }
  const { LETTA_API_KEY: key, LETTA_BASE_URL: url } = process.env;
  // LettaClient is the SDK's before 1.0.
  return sdk.LettaClient ? new sdk.LettaClient({ token: key, baseUrl: url }) : new sdk.Letta({ apiKey: key, baseURL: url });
}
