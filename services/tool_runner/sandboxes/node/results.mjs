// What a tool returned, as JSON text: valid in every case, and readable where JSON has no such thing.

import { inspect } from "node:util";

import { failure } from "./failures.mjs";

const STRICT = { fatal: true };

/** The items of what is iterated, once they are there; `limit` bytes bound how many. Any other value as it is. */
export async function settled(value, limit) {
  if (typeof value?.next !== "function" || !(value[Symbol.asyncIterator] ?? value[Symbol.iterator])) return value;
  const items = [];
  for await (const item of value) {
    items.push(item);
    if (items.length > limit / 2) break; // an item has a byte and a comma
  }
  return items;
}

/** The outcome for a value: its JSON, of at most `limit` bytes; a text that shows it where it has none. */
export function encode(value, limit) {
  let text;
  try {
    const shown = typeof value === "function" || typeof value === "symbol" ? inspect(value) : value;
    text = JSON.stringify(shown, plainWithin(limit)) ?? "null";
  } catch {
    text = JSON.stringify(inspect(value)); // it contains itself, is too deep, or its own methods throw
  }
  const size = Buffer.byteLength(text);
  if (size > limit) {
    return failure("output_too_large", "RangeError", `the result has ${size} bytes of JSON; at most ${limit} are accepted`);
  }
  return { reason: "ok", result: text };
}

// What JSON lacks, as what it has. A Date has its own form, NaN is null, as everywhere in JavaScript.
const plainWithin = (limit) =>
  function plain(key, value) {
    if (typeof value === "bigint") return Number.isSafeInteger(Number(value)) ? Number(value) : String(value);
    const original = this[key]; // before its toJSON
    if (original instanceof Uint8Array) return textOf(original);
    if (original instanceof ArrayBuffer) return textOf(new Uint8Array(original));
    if (ArrayBuffer.isView(original) && !(original instanceof DataView)) return Array.from(original);
    if (value instanceof Map) {
      const named = [...value.keys()].every((name) => typeof name === "string");
      return named ? Object.fromEntries(value) : [...value];
    }
    if (value instanceof Set) return [...value];
    if (value instanceof Error) return { name: value.name, message: value.message, ...value };
    if (typeof value?.next === "function" && value[Symbol.iterator]) return itemsOf(value, limit);
    return value;
  };

function itemsOf(iterator, limit) {
  const items = [];
  for (const item of iterator) {
    items.push(item);
    if (items.length > limit / 2) break;
  }
  return items;
}

function textOf(bytes) {
  try {
    return new TextDecoder("utf-8", STRICT).decode(bytes);
  } catch {
    return Buffer.from(bytes).toString("base64");
  }
}
