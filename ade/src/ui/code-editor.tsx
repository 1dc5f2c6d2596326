import { lazy, Suspense } from "react";

export interface CodeProps {
  label: string;
  value: string;
  onChange: (value: string) => void;
  language: "python" | "typescript" | "javascript" | "json";
  isReadOnly?: boolean;
  /** Ctrl+Enter. */
  run?: () => void;
}

const Mirror = lazy(() => import("./code-mirror"));

/** An editor for code; a plain field until it has been loaded. */
export function CodeEditor(props: CodeProps) {
  const { label, value, onChange, isReadOnly } = props;
  return (
    <Suspense
      fallback={
        <textarea className="code" aria-label={label} value={value} readOnly={isReadOnly} onChange={(event) => onChange(event.target.value)} />
      }
    >
      <Mirror {...props} />
    </Suspense>
  );
}
