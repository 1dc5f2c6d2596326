import { QueryCache, QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { Router } from "wouter";
import { isStatus } from "./api/errors";
import { useHashLocation, useHashSearch } from "./router";
import { AccessGate } from "./shell/access-gate";
import { lock } from "./shell/lock";
import { Screens } from "./shell/screens";
import { Toasts } from "./shell/toasts";

const queries = new QueryClient({
  queryCache: new QueryCache({
    onError: (error) => {
      if (isStatus(error, 401)) lock();
    },
  }),
  // Loci is there without a network, too: on this machine.
  defaultOptions: { queries: { retry: false, staleTime: 2_000, refetchOnWindowFocus: false, networkMode: "always" } },
});

/** The whole page. */
export function App() {
  return (
    <QueryClientProvider client={queries}>
      <Router hook={useHashLocation} searchHook={useHashSearch}>
        <AccessGate>
          <Screens />
        </AccessGate>
        <Toasts />
      </Router>
    </QueryClientProvider>
  );
}
