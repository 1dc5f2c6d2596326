import { useKeepsRequests } from "../chat/trace-choice";

/** Chooses whether new turns keep what the provider was asked. */
export function KeepRequests() {
  const [isKept, keep] = useKeepsRequests();
  return (
    <label className="choice small">
      <input type="checkbox" checked={isKept} onChange={(event) => keep(event.target.checked)} />
      Keep the provider's requests and answers of messages that I send
    </label>
  );
}
