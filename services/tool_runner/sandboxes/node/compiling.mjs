// From a tool's source to something that runs: types stripped, imports and exports rewritten, lines where they were.
//
// The source becomes the body of an async function, so that await, return of its function, and packages found by
// NODE_PATH work alike in modules and in CommonJS; Node's own modules can do the last of these not at all.

import { createRequire, SourceMap } from "node:module";
import vm from "node:vm";

import { rewritten } from "./rewriting.mjs";

const TRANSFORM = { importExportAssignConfig: "Classic", noEmptyExport: true };
// Not by import: Node would look through its 3.7 MB for names first.
const swc = createRequire(import.meta.url)("@swc/wasm-typescript");
const FRAME = /^\s*at (?:.*[\s(])?(tool\.[jt]s):(\d+):(-?\d+)/;
const WORLD = "require, module, exports, __filename, __dirname, $import, $load$, $importMeta, $box";

/** Pay once for what every call needs, before there is one. */
export function warmUp() {
  const sample = "enum A { B }\nexport default (a: A): number => 1\n";
  new Program(sample, "warm.ts", stripped(sample, "warm.ts"), "f", false);
}

/** `source_type` is missing where it may be either. Raises SyntaxError, with the line. */
export function compile({ source, source_type: type, function: name, mode }) {
  const from = (file, output) => new Program(source, file, output, name, mode === "script");
  const javascript = () => from("tool.js", { code: source });
  if (type === "javascript") return javascript();
  try {
    return from("tool.ts", stripped(source, "tool.ts"));
  } catch (error) {
    if (type) throw error;
    return either(javascript, error); // sloppy CommonJS is no TypeScript
  }
}

function either(attempt, error) {
  try {
    return attempt();
  } catch {
    throw error;
  }
}

// Stripping keeps every line and column; only enums, namespaces and their like need more.
function stripped(source, filename) {
  try {
    return swc.transformSync(source, { filename, mode: "strip-only" });
  } catch (error) {
    if (error?.code !== "UnsupportedSyntax") throw syntaxError(error);
  }
  try {
    return swc.transformSync(source, { filename, mode: "transform", sourceMap: true, transform: TRANSFORM });
  } catch (error) {
    throw syntaxError(error);
  }
}

function syntaxError(error) {
  const where = error?.startLine ? `line ${error.startLine}: ` : "";
  return new SyntaxError(`${where}${error?.message ?? error}`);
}

class Program {
  constructor(source, file, { code, map }, name, script) {
    this.name = file;
    this.map = map && new SourceMap(JSON.parse(map));
    this.script = script;
    this.lines = source.split("\n").length;
    const { strict, prologue, body, epilogue } = this.rewritten(code, name);
    const start = `(function (${WORLD}) { return (async () => { ${strict ? '"use strict"; ' : ""}${prologue}`;
    const end = `\n;${epilogue} })(); })`;
    this.compiled = new vm.Script(start + body + end, { filename: file, columnOffset: -start.length });
  }

  rewritten(code, name) {
    try {
      return rewritten(code, { name, script: this.script });
    } catch (error) {
      if (!error.loc) throw error;
      const { line } = this.original(error.loc.line, error.loc.column + 1);
      throw new SyntaxError(`line ${line}: ${error.message.replace(/ \(\d+:\d+\)$/, "")}`);
    }
  }

  /** Run it: the tool's function, or a program's value. Raises what it throws, and Error where there is no function. */
  async run(modules) {
    const module = { exports: {}, id: this.name, filename: this.name, loaded: false, children: [], paths: [] };
    const box = {};
    const meta = { url: `file:///${this.name}`, filename: this.name, dirname: process.cwd() };
    const load = (name) => modules.import(String(name));
    const pick = async (name, wanted) => picked(await load(name), wanted);
    const world = [modules.require, module, module.exports, this.name, process.cwd(), pick, load, meta, box];
    const ended = await this.compiled.runInThisContext().apply(module.exports, world);
    if (this.script) return ended === undefined ? await box.value : ended;
    return found(ended, module.exports, box);
  }

  /** A frame of a stack, with its place in the source as it was written; undefined where it is not in the source. */
  inSource(frame) {
    const place = FRAME.exec(frame);
    if (!place || place[1] !== this.name) return undefined;
    const { line, column } = this.original(Number(place[2]), Number(place[3]));
    // What was put before and behind the source is none of it.
    if (line > this.lines || column < 1) return undefined;
    return frame.replace(/:\d+:\d+(?=\)?$)/, `:${line}:${column}`);
  }

  original(line, column) {
    const entry = this.map?.findEntry(line - 1, column - 1);
    if (entry?.originalLine === undefined) return { line, column };
    return { line: entry.originalLine + 1, column: entry.originalColumn + 1 };
  }
}

// CommonJS packages whose names Node cannot foresee have them on their default.
function picked(namespace, wanted) {
  return wanted.map((name) => (name === "*" ? namespace : name in namespace ? namespace[name] : namespace.default?.[name]));
}

// By its name: exported or at the top level, then CommonJS's; else what the module is about.
function found({ name, local }, exports, { default: main }) {
  const choices = [local, exports?.[name], main, exports, exports?.default];
  const target = choices.find((choice) => typeof choice === "function");
  if (target) return target;
  throw new Error(`the source defines no function ${name} that is exported or at its top level`);
}
