// Runs one JavaScript or TypeScript tool: `node entry.mjs`, started early, waiting warm for its job.
//
//   fd 3  in: 4 bytes of length (big endian), JSON job; closed before the tool's code is loaded
//   fd 4  out: 4 bytes of length, JSON outcome, once
//
// Job:     mode ("call" or "script"), source, source_type ("typescript" or "javascript"; missing: either), function,
//          arguments {name: value}, parameters [names in the schema's order] (may be missing), environment {name: value},
//          agent_state (JSON text or ""), client (true or false), limits {result: bytes}
// Outcome: reason (ok, raised, bad_result, output_too_large), result (JSON text) or error {type, message, traceback},
//          edits [[label, value]]
//
// The outcome is the tool's own, so the tool may as well write it: who started this process decides what is believed.

import { closeSync, readSync, writeSync } from "node:fs";

import { callWith } from "./calling.mjs";
import { compile, warmUp } from "./compiling.mjs";
import { failure, raised } from "./failures.mjs";
import { defineClient, State } from "./given.mjs";
import { Modules } from "./modules.mjs";
import { useProxy } from "./network.cjs";
import { encode, settled } from "./results.mjs";

const JOB_FD = 3;
const OUTCOME_FD = 4;
const end = process.reallyExit.bind(process);
const WAITING = "the tool waits for something that never comes: its promise is not settled, and nothing is left to do";
let finished = false;

function readExactly(size) {
  const buffer = Buffer.alloc(size);
  for (let filled = 0; filled < size; ) {
    const count = readSync(JOB_FD, buffer, filled, size - filled, null);
    if (count === 0) end(0); // who started us is gone
    filled += count;
  }
  return buffer;
}

function readJob() {
  const job = JSON.parse(readExactly(readExactly(4).readUInt32BE()).toString());
  closeSync(JOB_FD);
  return job;
}

function finish(outcome) {
  if (finished) return;
  finished = true;
  const body = Buffer.from(JSON.stringify(outcome));
  const frame = Buffer.alloc(4 + body.length);
  frame.writeUInt32BE(body.length);
  body.copy(frame, 4);
  for (let written = 0; written < frame.length; ) written += writeSync(OUTCOME_FD, frame, written);
  end(0);
}

// What the tool does to its process is its outcome, too. `atExit`: by exit code, and whether it was asked for.
function watchProcess(program, atExit) {
  let asked = false;
  const exit = process.exit;
  process.exit = (code) => {
    asked = true;
    return exit(code);
  };
  process.on("uncaughtException", (error) => finish(raised(error, program)));
  process.on("unhandledRejection", (error) => finish(raised(error, program)));
  process.on("exit", (code) => finish(atExit(code, asked)));
}

function exited(code, asked) {
  return failure("raised", "ProcessExit", asked || code ? `the tool ended its process with exit code ${code}` : WAITING);
}

async function call(program, modules, job) {
  watchProcess(program, exited);
  const state = new State(job.agent_state);
  const value = await settled(await callWith(await program.run(modules), job, state.value), job.limits.result);
  finish({ ...encode(value, job.limits.result), edits: state.edits() });
}

// A program ends when nothing is left to do; the value of its last expression was found long before.
async function script(program, modules, job) {
  let value;
  let done = false;
  watchProcess(program, (code, asked) =>
    code || !(asked || done) ? exited(code, asked) : encode(value, job.limits.result),
  );
  value = await program.run(modules);
  done = true;
}

async function run(job) {
  let program;
  try {
    Object.assign(process.env, job.environment ?? {});
    const modules = new Modules();
    useProxy(process.env);
    if (job.client) defineClient(modules);
    program = compile(job);
    await (job.mode === "script" ? script : call)(program, modules, job);
  } catch (error) {
    finish(raised(error, program));
  }
}

// What was printed is out before the outcome is: a pipe that is full would hold it back, and its rest be lost.
for (const stream of [process.stdout, process.stderr]) stream._handle?.setBlocking?.(true);
warmUp();
run(readJob());
