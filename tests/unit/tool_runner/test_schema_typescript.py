"""A TypeScript or JavaScript tool's schema from its source: what is understood, what is refused and how it is said."""

from typing import Any

import pytest

from services.tool_runner.core.schemas.derive import derive
from services.tool_runner.core.schemas.errors import SchemaError
from services.tool_runner.core.schemas.rules import MAX_SOURCE_BYTES
from services.tool_runner.core.schemas.typescript.derive import check_function, derive_schema, takes_state
from services.tool_runner.core.schemas.typescript.jsdoc import parse_doc


def source(parameters: str, before: str = "") -> str:
    return f"{before}\n/** Act.\n * @param x it\n */\nexport function act({parameters}) {{}}\n"


def schema_of(annotation: str, before: str = "") -> dict[str, Any]:
    found = derive_schema(source(f"x: {annotation}", before))["parameters"]["properties"]["x"]
    return {key: value for key, value in found.items() if key != "description"}


def an_object(required: list[str], **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required}


STRING, NUMBER, NULL = {"type": "string"}, {"type": "number"}, {"type": "null"}
ITEM = "interface Item {\n /** Its name. */\n name: string;\n readonly count?: number;\n}\n"
ITEM_SCHEMA = an_object(["name"], name={"type": "string", "description": "Its name."}, count=NUMBER)


@pytest.mark.parametrize(
    ("annotation", "before", "expected"),
    [
        ("string", "", STRING),
        ("number", "", NUMBER),
        ("boolean", "", {"type": "boolean"}),
        ("any", "", {}),
        ("object", "", {"type": "object"}),
        ("string[]", "", {"type": "array", "items": STRING}),
        ("readonly string[]", "", {"type": "array", "items": STRING}),
        ("Array<Array<number>>", "", {"type": "array", "items": {"type": "array", "items": NUMBER}}),
        ("(string | number)[]", "", {"type": "array", "items": {"anyOf": [STRING, NUMBER]}}),
        ("Record<string, number>", "", {"type": "object", "additionalProperties": NUMBER}),
        ("{ [key: string]: number }", "", {"type": "object", "additionalProperties": NUMBER}),
        ("Record<'a' | 'b', number>", "", an_object(["a", "b"], a=NUMBER, b=NUMBER)),
        ("'a' | \"b\\n\"", "", {"type": "string", "enum": ["a", "b\n"]}),
        ("1 | -2 | 0x10", "", {"type": "integer", "enum": [1, -2, 16]}),
        ("'a' | 1 | true", "", {"enum": ["a", 1, True]}),
        ("string | null", "", {"anyOf": [STRING, NULL]}),
        ("string | undefined", "", STRING),
        ("`a${string}`", "", STRING),
        ("[string, number?]", "",
         {"type": "array", "items": {"anyOf": [STRING, NUMBER]}, "minItems": 1, "maxItems": 2}),
        ("{ a: string; 'b-c'?: number; d: string | undefined }", "",
         an_object(["a"], a=STRING, **{"b-c": NUMBER}, d=STRING)),
        ("Item[]", ITEM, {"type": "array", "items": ITEM_SCHEMA}),
        ("Partial<Item>", ITEM, ITEM_SCHEMA | {"required": []}),
        ("Required<Item>", ITEM, ITEM_SCHEMA | {"required": ["name", "count"]}),
        ("Pick<Item, 'count'>", ITEM, an_object([], count=NUMBER)),
        ("Omit<Item, 'name'>", ITEM, an_object([], count=NUMBER)),
        ("NonNullable<string | null>", "", STRING),
        ("Item & { extra: boolean }", "interface Item { name: string }",
         an_object(["name", "extra"], name=STRING, extra={"type": "boolean"})),
        ("Big", "export interface Small { a: string }\ninterface Big extends Small { b: number }",
         an_object(["a", "b"], a=STRING, b=NUMBER)),
        ("Color", "enum Color { Red = 'red', Green = 'green' }", {"type": "string", "enum": ["red", "green"]}),
        ("Level", "const enum Level { Low, Mid = 5, High }", {"type": "integer", "enum": [0, 5, 6]}),
        ("Kind", "type Kind = 'a' | 'b'", {"type": "string", "enum": ["a", "b"]}),
        ("Page<string>", "type Page<T, U = number> = { items: T[]; next: U }",
         an_object(["items", "next"], items={"type": "array", "items": STRING}, next=NUMBER)),
    ],
)  # fmt: skip
def test_types(annotation: str, before: str, expected: dict[str, Any]) -> None:
    assert schema_of(annotation, before) == expected


@pytest.mark.parametrize(
    ("annotation", "before", "says"),
    [
        ("Date", "", "Date, which has no JSON form"),
        ("Map<string, number>", "", "Map<string, number>, which has no JSON form"),
        ("() => void", "", "() => void, which has no JSON form"),
        ("keyof Item", "interface Item { a: string }", "keyof Item, which has no JSON form"),
        ("unique symbol", "", "which has no JSON form"),
        ("Thing", "class Thing {}", "Thing, which has no JSON form"),
        ("{ when: Date }", "", "an object, whose 'when' (line 5) has type Date"),
        ("{ run(): void }", "", "a member (line 5) that is not a value"),
        ("Node", "interface Node { inner: Node[] }", "Node, which contains itself"),
        ("A", "type A = B[]; type B = A", "which contains itself"),
        ("A", "interface A extends A { x: 1 }", "which contains itself"),
        ("Page", "type Page<T> = T[]", "Page, which needs its type arguments"),
        ("string & number", "", "which is no object"),
        ("Record<Date, string>", "", "Date, which has no JSON form"),
        ("[string, ...number[]]", "", "open at its end"),
        # Doubled at each step: 2**40 parts.
        ("M0", "\n".join(f"type M{n} = {{ a: M{n + 1}; b: M{n + 1} }}" for n in range(40)) + "\ntype M40 = 1",
         "more than 5000 parts"),
        ("D<" * 40 + "1" + ">" * 40, "type D<T> = { a: T; b: T }", "more than 5000 parts"),
    ],
)  # fmt: skip
def test_types_without_a_json_form_are_named(annotation: str, before: str, says: str) -> None:
    with pytest.raises(SchemaError, match="parameter 'x' of function 'act' has type") as caught:
        schema_of(annotation, before)
    assert caught.value.reason == "UNSUPPORTED_TYPE"
    assert says in caught.value.message


DOC = "/** Do it.\n * @param a first\n * @param b second\n * @param {string} c third */\n"


@pytest.mark.parametrize(
    ("text", "name", "required"),
    [
        (DOC + "export function f(a: string, b?: number, c: string = 'x') {}", "f", ["a"]),
        (DOC + "export const g = async (a: string, b: number | undefined) => a", "g", ["a"]),
        (DOC + "function h(a: string, b = 6) {}\nconst LATER = 1", "h", ["a"]),
        (DOC + "export default async function f(a: string, ...b: string[]) {}", "f", ["a"]),
        (DOC + "function f(this: any, a: string, agent_state: any, request_heartbeat: boolean) {}\nexport { f as g }",
         "g", ["a"]),
        (DOC + "export function f({ a, b = 3 }: { a: string; b: number }) {}", "f", ["a"]),
        (DOC + "const helper = (x) => x;\n" + DOC + "export function f(a: string) {}\nfunction last() {}", "f", ["a"]),
        (DOC + "function f(c) {}\nmodule.exports = f", "f", ["c"]),
        (DOC + "function f({ c }) {}\nmodule.exports = { f }", "f", ["c"]),
        ("module.exports = {\n" + DOC + " f(a: string) {},\n other: 1 }", "f", ["a"]),
        (DOC + "exports.f = function (a: string) {}", "f", ["a"]),
        (DOC + "export const f = (x => x) as any;\n" + DOC + "export const g = (function (a: string) {}) satisfies F",
         "g", ["a"]),
        ("/** Do it.\n @param {number} [n=3] - how many\n @param {Object.<string, ?number>} m more */\n"
         "function f(n, m) {}", "f", ["m"]),
    ],
)  # fmt: skip
def test_which_function_and_what_may_be_left_out(text: str, name: str, required: list[str]) -> None:
    derived = derive_schema(text)
    assert (derived["name"], derived["description"]) == (name, "Do it.")
    assert derived["parameters"]["required"] == required


def test_a_comment_may_give_types_and_descriptions() -> None:
    text = """
    /**
     * Look it up.
     *
     * In detail.
     * @param {string[]} places - where,
     *   on the map
     * @param {{ kind: 'a' | 'b' }} options how
     * @returns {Promise<string>} nothing: of interest
     */
    module.exports = async function look(places, options) {}"""
    assert derive_schema(text) == {
        "name": "look",
        "description": "Look it up.\n\nIn detail.",
        "parameters": an_object(
            ["places", "options"],
            places={"type": "array", "items": STRING, "description": "where, on the map"},
            options=an_object(["kind"], kind={"type": "string", "enum": ["a", "b"]}) | {"description": "how"},
        ),
    }


def test_comments_of_the_parts_stand_for_those_of_the_parameter() -> None:
    text = "/** Act. */\nexport const act = ({ name }: Item) => name"
    assert derive_schema(ITEM.replace(" readonly count?: number;\n", "") + text)["parameters"] == an_object(
        ["name"], name={"type": "string", "description": "Its name."}
    )


@pytest.mark.parametrize(
    ("text", "reason", "says"),
    [
        ("const x = 1;\nfunction f( {", "SOURCE_DOES_NOT_PARSE", "line 2"),
        ("const a = 1\n\nconst b = ;", "SOURCE_DOES_NOT_PARSE", "line 3"),
        ("const x = 1", "NO_FUNCTION", "no function"),
        ("export default () => 1", "NO_FUNCTION", "line 1: the exported function has no name"),
        ("\nfunction f() {}", "NO_DOCSTRING", "line 2: function 'f' has no JSDoc comment"),
        ("// no\nfunction f() {}", "NO_DOCSTRING", "/** Say what f does. */"),
        ("/** F. */\nfunction f(a) {}", "PARAMETER_WITHOUT_TYPE", "line 2: parameter 'a' of function 'f' has no type"),
        ("/** F. */\nfunction f(a: string) {}", "PARAMETER_WITHOUT_DESCRIPTION", "'@param a what it is'"),
        ("/** F. */\nfunction f({ a }: { a: string }, b: string) {}", "UNSUPPORTED_PARAMETER", "give it a name"),
        ("/** F. */\nfunction f([a]: string[]) {}", "UNSUPPORTED_PARAMETER", "taken apart"),
        ("/** F. */\nfunction f({ a }: string) {}", "UNSUPPORTED_TYPE", "no object with named parts"),
        ("/** F. */\nfunction größe() {}", "BAD_NAME", "letters"),
        ("/" * (MAX_SOURCE_BYTES + 1), "SOURCE_TOO_LARGE", str(MAX_SOURCE_BYTES)),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(text: str, reason: str, says: str) -> None:
    with pytest.raises(SchemaError) as caught:
        derive_schema(text)
    assert caught.value.reason == reason
    assert says in caught.value.message


def test_a_given_schema_must_be_of_the_source() -> None:
    check_function("function rollDice(sides: number) {}", "rollDice")
    check_function("export default (sides) => sides", "anything")
    check_function("module.exports = make()", "anything")
    with pytest.raises(SchemaError, match="function is: f"):
        check_function("function f() {}", "g")
    given = {"name": "rollDice", "parameters": an_object([], sides=NUMBER)}
    derived = derive("function rollDice(sides, agent_state) {}", "javascript", given)
    assert (derived.schema, derived.takes_agent_state) == (given, True)
    arguments = an_object([], n=NUMBER)
    assert derive("/** F. */ function f(n) {}", "typescript", None, arguments).schema["parameters"] == arguments


@pytest.mark.parametrize(
    ("text", "takes"),
    [
        ("const f = (a, agentState) => a", True),
        ("const f = agent_state => 1", True),
        ("function f(agent_state?: AgentState) {}", True),
        ("export default (agent_state) => 1", True),
        ("function f({ agent_state }) {}", False),
        ("function f(a) {}\nfunction g(agent_state) {}", False),
    ],
)
def test_whether_a_function_takes_the_state(text: str, takes: bool) -> None:
    assert takes_state(text, "f") is takes


def test_other_comments_say_nothing() -> None:
    assert parse_doc("/* F. */").description == ""
    assert parse_doc("/** @param {{a: string} x it */").parameters == {}


def test_examples_and_remarks_belong_to_the_description() -> None:
    doc = parse_doc("/** Add.\n * @param a - one\n * @returns the sum\n * @example add(1)\n *   is 2\n * @private\n */")
    assert doc.description == "Add.\n\nExample: add(1)\n  is 2"
