// What a tool returned, as JSON text.

import { inspect } from "node:util";

import { failure } from "./failures.mjs";

/** The outcome for a value: its JSON, of at most `limit` bytes; `orText`: a text that shows it where it has none. */
export function encode(value, limit, { orText = false } = {}) {
  let text;
  try {
    if (typeof value === "function" || typeof value === "symbol") throw new TypeError(`a ${typeof value} has no JSON form`);
    text = JSON.stringify(value, plain) ?? "null";
  } catch (error) {
    if (orText) return encode(inspect(value), limit);
    const why = error instanceof RangeError ? "too deeply nested" : String(error?.message ?? error).split("\n")[0];
    return failure("bad_result", error?.constructor?.name ?? "Error", `the tool returned something that is not JSON: ${why}`);
  }
  const size = Buffer.byteLength(text);
  if (size > limit) {
    return failure("output_too_large", "RangeError", `the result has ${size} bytes of JSON; at most ${limit} are accepted`);
  }
  return { reason: "ok", result: text };
}

// What JSON lacks, as what it has. A Date has its own form, NaN is null, as everywhere in JavaScript.
function plain(key, value) {
  if (typeof value === "bigint") return Number.isSafeInteger(Number(value)) ? Number(value) : String(value);
  const original = this[key]; // before its toJSON
  if (original instanceof Uint8Array) return Buffer.from(original).toString();
  if (value instanceof Map) {
    const named = [...value.keys()].every((name) => typeof name === "string");
    return named ? Object.fromEntries(value) : [...value];
  }
  if (value instanceof Set) return [...value];
  if (value instanceof Error) return { name: value.name, message: value.message, ...value };
  return value;
}
