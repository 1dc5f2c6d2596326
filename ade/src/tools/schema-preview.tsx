import { useEffect, useState } from "react";
import { problemOf } from "../api/errors";
import { type Language, type Schema, schemaOf } from "./tools";

const PAUSE_MILLISECONDS = 400;

export interface Found {
  /** The newest that could be read; stays while the source is being typed. */
  schema: Schema | null;
  /** Why the source is no tool. */
  sentence: string;
}

/** What a model would be told about a source, some time after it was typed. */
export function useSchema(code: string, language: Language, isOn: boolean): Found {
  const [found, setFound] = useState<Found>({ schema: null, sentence: "" });
  useEffect(() => {
    if (!isOn || !code.trim()) return;
    const abort = new AbortController();
    const timer = setTimeout(() => {
      schemaOf(code, language, abort.signal).then(
        (schema) => setFound({ schema, sentence: "" }),
        (error: unknown) => {
          if (!abort.signal.aborted) setFound((before) => ({ ...before, sentence: problemOf(error).sentence }));
        },
      );
    }, PAUSE_MILLISECONDS);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [code, language, isOn]);
  return found;
}

/** The name, the description and the arguments that a model reads. */
export function SchemaPreview({ found: { schema, sentence } }: { found: Found }) {
  const required = new Set(schema?.parameters?.required);
  const properties = Object.entries(schema?.parameters?.properties ?? {});
  return (
    <section className="schema" aria-label="What the model reads">
      <h3>What the model reads</h3>
      {sentence && <p className="error-text small" role="status">{sentence}</p>}
      {schema && (
        <>
          <p className="plain">{schema.description}</p>
          <dl className="arguments">
            {properties.map(([name, property]) => (
              <div key={name}>
                <dt><code>{name}</code>{required.has(name) ? "" : " (optional)"}</dt>
                <dd>
                  <code>{property.enum ? property.enum.map((each) => JSON.stringify(each)).join(" | ") : String(property.type ?? "any")}</code>{" "}
                  <span className="muted">{property.description}</span>
                </dd>
              </div>
            ))}
          </dl>
          {properties.length === 0 && <p className="muted small">It takes no arguments.</p>}
          <details>
            <summary className="small">As JSON</summary>
            <pre className="plain" tabIndex={0}>{JSON.stringify(schema, null, 2)}</pre>
          </details>
        </>
      )}
    </section>
  );
}
