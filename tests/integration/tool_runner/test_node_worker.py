"""JavaScript and TypeScript tools as Node runs them: what is called, with what, and how it ends."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.integration.tool_runner.node_worker import needs_node, run

pytestmark = needs_node

ROLL = "function rollDice(sides: number): string { return `of ${sides}` }"


@pytest.mark.parametrize(
    ("source", "job", "expected"),
    [
        # How the function is found.
        (ROLL, {"function": "rollDice", "arguments": {"sides": 6}}, "of 6"),
        ("export async function f(a: number) { await null; return a + 1 }", {"arguments": {"a": 1}}, 2),
        ("export const f = (a: number): number => a * 2", {"arguments": {"a": 2}}, 4),
        ("const g = () => 1;\nexport { g as f };", {}, 1),
        ("export default function (a) { return a }", {"function": "named_elsewhere", "arguments": {"a": 1}}, 1),
        ("export default async (a) => a\n;[1].at(0)", {"arguments": {"a": 1}}, 1),
        ("const os = require('os'); module.exports = { f: () => typeof os.cpus };", {}, "function"),
        ("exports.f = () => 1", {}, 1),
        ("module.exports = (a) => a", {"arguments": {"a": 3}}, 3),
        ("with ({ a: 4 }) var b = a; function f() { return b }", {}, 4),
        # What TypeScript has and JavaScript has not.
        ("enum C { A = 'a' } namespace N { export const q = C.A } export function f() { return N.q }", {}, "a"),
        ("class P { constructor(private readonly x: number) {} get() { return this.x } }\n"
         "export function f() { return new P(3).get() satisfies number }", {}, 3),
        ("import type { A } from 'a';\nimport { type B } from 'node:os';\n"
         "export function f(x?: A & B) { return 1 as any }", {}, 1),
        # Packages and modules.
        ("import fs, { existsSync as e } from 'node:fs';\nimport * as path from 'path';\n"
         "export const f = async () => [typeof fs.existsSync, e('/'), path.sep, typeof (await import('os')).cpus]",
         {}, ["function", True, "/", "function"]),
        ("const d = await Promise.resolve(5);\nexport function f() { return [d, typeof import.meta.url] }",
         {}, [5, "string"]),
        # Arguments come by name, and go by position.
        ("function f(a, b) { return [a, b] }", {"arguments": {"b": 2, "a": 1}}, [1, 2]),
        ("function f(a, b = 5) { return [a, b] }", {"arguments": {"a": 1}, "parameters": ["a", "b"]}, [1, 5]),
        ("function f(x, y) { return [x, y] }", {"arguments": {"b": 2}, "parameters": ["a", "b"]}, [None, 2]),
        ("function f({ a, b = 3 }) { return [a, b] }", {"arguments": {"a": 1}, "parameters": ["a", "b"]}, [1, 3]),
        ("function f(all) { return all }", {"arguments": {"a": 1, "b": 2}}, {"a": 1, "b": 2}),
        ("function f(args) { return args }", {"arguments": {"a": 1}}, {"a": 1}),
        ("function f(args) { return args }", {"arguments": {"args": 1}}, 1),
        ("function f(sides) { return sides }", {"arguments": {"n": 6}}, 6),
        ("function f(a, ...more) { return [a, more] }", {"arguments": {"a": 1, "more": [2, 3]}}, [1, [2, 3]]),
        ("const f = ((g) => (...all) => g(...all))((a, b) => [a, b])",
         {"arguments": {"b": 2, "a": 1}, "parameters": ["a", "b"]}, [1, 2]),
        # Results.
        ("function f() {}", {}, None),
        ("function f() { return [undefined, NaN, 5n, 2n ** 64n, new Date(0), new Set([1]), new Map([['a', 1]]), "
         "new Map([[1, 2]]), Buffer.from('hé'), { a: undefined, toJSON: undefined }] }", {},
         [None, None, 5, str(2**64), "1970-01-01T00:00:00.000Z", [1], {"a": 1}, [[1, 2]], "hé", {}]),
        ("function f() { return [new Error('e'), process.env.NAME] }", {"environment": {"NAME": "v"}},
         [{"name": "Error", "message": "e"}, "v"]),
        ("function f() { return f }", {}, "[Function: f]"),
        ("function f() { const a = { b: 1 }; a.a = a; return a }", {}, "<ref *1> { b: 1, a: [Circular *1] }"),
        ("function f() { let a; for (let i = 0; i < 1e5; i++) a = [a]; return a }", {}, "[ [ [ [Array] ] ] ]"),
        ("function* f() { yield 1; yield { a: new Set([2]) } }", {}, [1, {"a": [2]}]),
        ("async function* f() { yield 1; yield 2 }", {}, [1, 2]),
        ("function f() { return [new Map([[1, 2]]).keys(), new Float32Array([1.5]), Buffer.from([255])] }", {},
         [[1], [1.5], "/w=="]),
        ("function f() { return { get a() { throw new Error('no') } } }", {}, "{ a: [Getter] }"),
    ],
)  # fmt: skip
def test_calls(source: str, job: dict[str, Any], expected: Any) -> None:
    ran = run(source, **job)
    assert ran.outcome["reason"] == "ok", ran
    assert ran.result == expected
    assert (ran.stdout, ran.stderr) == ("", "")


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("const a: number = 2;\na + 1", 3),
        ("enum E { A = 3 }\nE.A;", 3),
        ("let x = await Promise.resolve(5); x", 5),
        ("Promise.resolve(6)", 6),
        ("import * as path from 'path'\npath.sep", "/"),
        ("for (;;) { break }", None),
        ("console.log('said')", None),
        ("let o = {}; setTimeout(() => o.later = 1, 5); o", {"later": 1}),
        ("process.exit(0)", None),
        ("({ get a() { return 1 } })", {"a": 1}),
        ("(function g() {})", "[Function: g]"),
        ("#!/usr/bin/env node\n'hash'", "hash"),
        ("", None),
    ],
)
def test_programs(source: str, expected: Any) -> None:
    ran = run(source, mode="script")
    assert ran.outcome["reason"] == "ok", ran
    assert ran.result == expected


@pytest.mark.parametrize(
    ("source", "error", "frames"),
    [
        ("// one\nfunction g() { throw new TypeError('bad') }\nasync function f() {\n  g() }", "raised: TypeError: bad",
         ["at g (tool.ts:2:22)", "at f (tool.ts:4:3)"]),
        ("enum A {\n B }\nfunction f() {\n  throw new Error(A[0]) }", "raised: Error: B", ["at f (tool.ts:4:9)"]),
        ("import 'fs'; null.x\nfunction f() {}", "raised: TypeError: Cannot read properties", ["at tool.ts:1:"]),
        ("function f() { throw 'text' }", "raised: string: text", []),
        ("function f() { throw new Error('out', { cause: new Error('in') }) }", "raised: Error: out: in", ["at f"]),
        ("function f() { throw { get message() { throw 1 } } }", "raised: Error: (its message could not be made)", []),
        ("function f() { setTimeout(() => { throw new Error('late') }); return new Promise(() => {}) }",
         "raised: Error: late", ["tool.ts:1:"]),
        ("function f() { Promise.reject(new RangeError('r')); return new Promise((r) => setTimeout(r, 99)) }",
         "raised: RangeError: r", []),
        ("function f() { process.exit(3) }", "raised: ProcessExit: the tool ended its process with exit code 3", []),
        ("function f() { return new Promise(() => {}) }", "raised: ProcessExit: the tool waits for something", []),
        ("const a = 1;\nfunction f( {", "raised: SyntaxError: line 2", []),
        ("let a = 1;\n\nlet a = 2; function f() {}", "raised: SyntaxError: line 3: Identifier 'a' has already", []),
        ("function g() {}", "raised: Error: the source defines no function f", []),
        ("import x from 'not-there'; function f() {}", "raised: Error: there is no package 'not-there'", []),
        ("const x = require('not-there'); function f() {}", "raised: Error: Cannot find module 'not-there'", []),
        ("export * from 'fs'", "raised: SyntaxError: line 1: `export *`", []),
        ("function f() { return 'x'.repeat(2e6) }", "output_too_large: RangeError: the result has 2000002 bytes", []),
        ("(" * 50_000, "raised: SyntaxError: ", []),
        ("const x: " + "Array<" * 20_000, "raised: ", []),
    ],
)  # fmt: skip
def test_what_goes_wrong_is_said_with_the_source_s_own_lines(source: str, error: str, frames: list[str]) -> None:
    ran = run(source)
    assert ran.error.startswith(error)
    assert all(frame in ran.traceback for frame in frames), ran.traceback
    assert "entry.mjs" not in ran.traceback


def test_what_is_printed_is_printed() -> None:
    source = "console.log('out', { a: 1 }); console.error('err');\n"
    ran = run(source + "function f() { process.stdout.write('x'.repeat(2e5)) }")
    assert ran.stdout == "out { a: 1 }\n" + "x" * 200_000
    assert ran.stderr == "err\n"


def test_agent_state_is_given_and_its_edits_come_back() -> None:
    blocks = [{"label": "a", "value": "1"}, {"label": "b", "value": "2"}]
    state = json.dumps({"name": "Ada", "memory": {"blocks": blocks}})
    source = """
    export function f(text: string, agent_state: any) {
      agent_state.memory.get_block("a").value += text;
      agent_state.memory.updateBlockValue("b", "2");
      return [agent_state.name, agent_state.blocks.length, text];
    }"""
    ran = run(source, {"text": "!"}, agent_state=state)
    assert ran.result == ["Ada", 2, "!"]
    assert ran.outcome["edits"] == [["a", "1!"]]


def test_the_client_is_made_from_the_layer_when_it_is_used(tmp_path: Path) -> None:
    package = tmp_path / "node_modules" / "@letta-ai" / "letta-client"
    package.mkdir(parents=True)
    (package / "index.js").write_text("exports.Letta = class { constructor(options) { this.options = options } }")
    names = {"NODE_PATH": str(tmp_path / "node_modules"), "LETTA_API_KEY": "k", "LETTA_BASE_URL": "http://loci"}
    ran = run("const f = () => client.options", environment=names, client=True)
    assert ran.result == {"apiKey": "k", "baseURL": "http://loci"}
    assert "npm_requirements" in run("const f = () => client.options", client=True).error
    assert run("const client = 1; const f = () => client", client=True).result == 1


def test_packages_of_a_layer(tmp_path: Path) -> None:
    folder = tmp_path / "node_modules"
    for name, about, text in (
        ("old", {"main": "i.js"}, "module.exports = { a: 1, [`b`]: 2 }"),
        ("new", {"type": "module", "exports": {"import": "./i.js"}}, "export const a = 3; await 0; export default 4"),
    ):
        (folder / name).mkdir(parents=True)
        (folder / name / "i.js").write_text(text)
        (folder / name / "package.json").write_text(json.dumps({"name": name, **about}))
    source = """
    import old, { a, b } from 'old';
    import four, { a as three } from 'new';
    export const f = async () => [old.a, a, b, three, four, (await import('new')).a, require('old').b]"""
    assert run(source, environment={"NODE_PATH": str(folder)}).result == [1, 1, 2, 3, 4, 3, 2]


def test_the_job_s_descriptor_is_closed_and_no_child_inherits_the_outcome_s() -> None:
    source = """
    import { execFileSync } from 'node:child_process';
    import fs from 'node:fs';
    export const f = () => {
      let mine = true;
      try { fs.fstatSync(3) ; mine = fs.readlinkSync('/proc/self/fd/3').startsWith('pipe') } catch { mine = false }
      return [mine, execFileSync('sh', ['-c', '(echo >&4) 2>/dev/null || echo none']).toString()];
    }"""
    assert run(source).result == [False, "none\n"]
