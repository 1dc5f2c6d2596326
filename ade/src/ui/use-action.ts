import { useCallback, useRef, useState } from "react";
import { isStatus, problemOf, type Problem } from "../api/errors";
import { lock } from "../shell/lock";

export interface Action {
  /** Does something, unless it is being done. Returns whether it succeeded. */
  run: (act: () => Promise<unknown>) => Promise<boolean>;
  isBusy: boolean;
  /** Why it failed last time. */
  problem: Problem | null;
  clear: () => void;
}

/** Something that a person does once at a time, and that may fail. */
export function useAction(): Action {
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);
  const isRunning = useRef(false);
  const run = useCallback(async (act: () => Promise<unknown>): Promise<boolean> => {
    if (isRunning.current) return false;
    isRunning.current = true;
    setBusy(true);
    setProblem(null);
    try {
      await act();
      return true;
    } catch (error) {
      // What was typed waits as a draft.
      if (isStatus(error, 401)) lock();
      setProblem(problemOf(error));
      return false;
    } finally {
      isRunning.current = false;
      setBusy(false);
    }
  }, []);
  const clear = useCallback(() => setProblem(null), []);
  return { run, isBusy, problem, clear };
}
