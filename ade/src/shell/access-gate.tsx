import { useQueryClient } from "@tanstack/react-query";
import { createContext, type ReactNode, useCallback, useContext, useEffect, useState } from "react";
import { type Caller, renewClient, type Right, whoAmI } from "../api/client";
import { isStatus, problemOf, type Problem } from "../api/errors";
import { currentKey, keepKey, keyOfAnotherTab } from "../api/key";
import { forgetSessions } from "../chat/sessions";
import { ProblemBox } from "../ui/problem-box";
import { useLocks } from "./lock";
import { Login } from "./login";

const CallerContext = createContext<Caller | null>(null);

/** Returns who uses the page. */
export function useCaller(): Caller {
  const caller = useContext(CallerContext);
  if (!caller) throw new Error("outside of the access gate");
  return caller;
}

/** Returns why the caller may not do something; null where he may. */
export function useRefusal(right: Right, agentId?: string): string | null {
  const caller = useCaller();
  const rights = (agentId && caller.agents?.[agentId]) || caller.rights;
  return rights.includes(right) ? null : `The role ${caller.role} may not do this.`;
}

type State = { at: "asking" } | { at: "locked" } | { at: "failed"; problem: Problem } | { at: "open"; caller: Caller };

/** Shows the page to whom the server lets in, and asks others for a key. */
export function AccessGate({ children }: { children: ReactNode }) {
  const [state, setState] = useState<State>({ at: "asking" });
  const locks = useLocks();
  const queries = useQueryClient();
  const enter = useCallback(async () => {
    setState(await entered());
  }, []);
  useEffect(() => void enter(), [enter]);
  useEffect(() => {
    if (locks) setState({ at: "locked" });
  }, [locks]);

  if (state.at === "asking") return null;
  if (state.at === "failed") {
    return <main className="centre"><ProblemBox title="Could not reach Loci" problem={state.problem} retry={enter} /></main>;
  }
  if (state.at === "locked") {
    return (
      <Login
        enter={async (key) => {
          const caller = await withKey(key);
          queries.clear();
          forgetSessions();
          setState({ at: "open", caller });
        }}
      />
    );
  }
  return <CallerContext value={state.caller}>{children}</CallerContext>;
}

async function entered(): Promise<State> {
  try {
    return { at: "open", caller: await whoAmI() };
  } catch (error) {
    if (!isStatus(error, 401)) return { at: "failed", problem: problemOf(error) };
  }
  const key = currentKey() === null ? await keyOfAnotherTab() : null;
  if (key === null) return { at: "locked" };
  try {
    return { at: "open", caller: await withKey(key) };
  } catch {
    return { at: "locked" };
  }
}

/** Keeps a key that the server knows. Throws what the server says of another. */
async function withKey(key: string): Promise<Caller> {
  const before = currentKey();
  keepKey(key);
  renewClient();
  try {
    return await whoAmI();
  } catch (error) {
    keepKey(before);
    renewClient();
    throw error;
  }
}
