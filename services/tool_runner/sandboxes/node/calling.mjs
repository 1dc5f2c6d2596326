// Calls the tool's function: arguments come by name, JavaScript takes them by position.

import { parseExpressionAt } from "acorn";

const STATE = new Set(["agent_state", "agentState"]);
const CARRIERS = new Set(["args", "arguments_", "input", "inputs", "opts", "options", "params", "props"]);

/** Call and await. */
export function callWith(target, job, state) {
  const names = parametersOf(target);
  const given = job.arguments ?? {};
  return target(...positions(names, job.parameters ?? Object.keys(given), given, state));
}

/**
 * The arguments in order.
 *   one destructured parameter, or one that no argument is named after  the whole object
 *   every argument is the name of a parameter                           each at its parameter
 *   else                                                                in the order of the schema's properties
 */
export function positions(names, order, given, state) {
  const own = names.filter((parameter) => !STATE.has(parameter.name));
  const values = ordered(own, order, given);
  names.forEach((parameter, index) => {
    if (STATE.has(parameter.name)) values.splice(index, 0, state);
  });
  return values;
}

function ordered(own, order, given) {
  if (own.length === 1 && takesAll(own[0], order)) return [given];
  const known = new Set(own.map((parameter) => parameter.name));
  if (!own.length || !Object.keys(given).every((name) => known.has(name))) return order.map((name) => given[name]);
  return own.flatMap(({ name, rest }) => (rest ? (given[name] ?? []) : [given[name]]));
}

function takesAll({ name, rest, object }, order) {
  if (rest || order.includes(name)) return false;
  return object || order.length !== 1 || CARRIERS.has(name);
}

/** [{name, rest, object}] of a function, from its own text; empty where that does not say. */
function parametersOf(target) {
  try {
    const text = Function.prototype.toString.call(target);
    return parseExpressionAt(`(${text})`, 0, { ecmaVersion: "latest" }).params.map(described);
  } catch {
    return []; // a method, a bound or native function
  }
}

function described(node) {
  const inner = node.type === "AssignmentPattern" ? node.left : node.type === "RestElement" ? node.argument : node;
  return { name: inner.name, rest: node.type === "RestElement", object: inner.type === "ObjectPattern" };
}
