import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { javascript } from "@codemirror/lang-javascript";
import { python } from "@codemirror/lang-python";
import { bracketMatching, HighlightStyle, indentOnInput, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { Annotation, EditorState, type Extension } from "@codemirror/state";
import { drawSelection, EditorView, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { useEffect, useRef } from "react";
import type { CodeProps } from "./code-editor";
import { Echoes } from "./echoes";

const COLOURS = HighlightStyle.define([
  { tag: [tags.keyword, tags.operatorKeyword, tags.modifier], color: "var(--accent)" },
  { tag: [tags.string, tags.special(tags.string), tags.regexp], color: "var(--ok)" },
  { tag: [tags.comment, tags.docString], color: "var(--muted)", fontStyle: "italic" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--waiting)" },
  { tag: [tags.function(tags.variableName), tags.definition(tags.variableName)], color: "var(--tool)" },
  { tag: [tags.typeName, tags.className], color: "var(--thought)" },
]);

const LOOKS = EditorView.theme({
  "&": { color: "var(--text)", backgroundColor: "var(--bg)", fontSize: "13px" },
  ".cm-content": { fontFamily: "var(--mono)", caretColor: "var(--text)", minHeight: "200px" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  ".cm-gutters": { backgroundColor: "var(--surface)", color: "var(--muted)", borderRight: "1px solid var(--line)" },
  "&.cm-focused": { outline: "2px solid var(--accent)", outlineOffset: "-2px" },
  "&.cm-focused .cm-selectionBackground, .cm-selectionBackground": { backgroundColor: "var(--raised)" },
  ".cm-scroller": { maxHeight: "55vh", overflow: "auto" },
});

const LANGUAGES: Record<CodeProps["language"], () => Extension> = {
  python: () => [python(), indentUnit.of("    ")],
  typescript: () => [javascript({ typescript: true }), indentUnit.of("  ")],
  javascript: () => [javascript(), indentUnit.of("  ")],
  json: () => [javascript(), indentUnit.of("  ")],
};

/** Text that is put over other text, or has several lines: the browser's own way writes styles, which the page's policy refuses. */
const REPLACING = EditorView.domEventHandlers({
  beforeinput(event, view) {
    const text = event.data;
    if (event.inputType !== "insertText" || text === null || view.composing || view.state.readOnly) return false;
    if (view.state.selection.main.empty && !text.includes("\n")) return false;
    event.preventDefault();
    view.dispatch(view.state.replaceSelection(text), { userEvent: "input.type", scrollIntoView: true });
    return true;
  },
});

/** Marks a text that was handed in. */
const HANDED_IN = Annotation.define<true>();

/** An editor with colours. It lives in a shadow tree, where its styles need no `style` element: the page's policy has none. */
export default function CodeMirror({ label, value, onChange, language, isReadOnly = false, run }: CodeProps) {
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView>(undefined);
  const echoes = useRef(new Echoes());
  const latest = useRef({ onChange, run, value });
  useEffect(() => {
    latest.current = { onChange, run, value };
  });
  useEffect(() => {
    const element = host.current;
    if (!element) return;
    const root = element.shadowRoot ?? element.attachShadow({ mode: "open" });
    const keys = keymap.of([
      {
        key: "Mod-Enter",
        run: () => {
          latest.current.run?.();
          return Boolean(latest.current.run);
        },
      },
      // Tab leaves the editor, as it leaves every other field.
      ...defaultKeymap,
      ...historyKeymap,
    ]);
    const made = new EditorView({
      root,
      parent: root as unknown as Element,
      state: EditorState.create({
        doc: latest.current.value,
        extensions: [
          keys,
          history(),
          lineNumbers(),
          drawSelection(),
          indentOnInput(),
          bracketMatching(),
          LANGUAGES[language](),
          syntaxHighlighting(COLOURS),
          REPLACING,
          LOOKS,
          EditorState.readOnly.of(isReadOnly),
          EditorView.contentAttributes.of({ "aria-label": label, "aria-multiline": "true" }),
          EditorView.lineWrapping,
          EditorView.updateListener.of((update) => {
            if (!update.docChanged || update.transactions.some((each) => each.annotation(HANDED_IN))) return;
            const text = update.state.doc.toString();
            echoes.current.tell(text);
            latest.current.onChange(text);
          }),
        ],
      }),
    });
    view.current = made;
    echoes.current = new Echoes();
    return () => made.destroy();
  }, [label, language, isReadOnly]);
  useEffect(() => {
    if (echoes.current.isOwn(value)) return;
    const now = view.current?.state.doc.toString();
    if (!view.current || now === value) return;
    view.current.dispatch({ changes: { from: 0, to: now?.length ?? 0, insert: value }, annotations: HANDED_IN.of(true) });
  }, [value]);
  return <div className="code-mirror" ref={host} />;
}
