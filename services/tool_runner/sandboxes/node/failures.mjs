// How a call ended, where it did not end well: {reason, error {type, message, traceback}}.

const MESSAGE_CHARS = 4000;
const FRAMES = 10;
const CAUSES = 3;

export function failure(reason, type, message, traceback = "") {
  return { reason, error: { type, message: message.slice(0, MESSAGE_CHARS), traceback } };
}

/** For what the tool's code threw. Reading it runs code of the tool's, which may throw in turn. */
export function raised(error, program) {
  try {
    if (!(error instanceof Object)) return failure("raised", typeof error, String(error));
    const type = String(error.constructor?.name || error.name || "Error");
    return failure("raised", type, messageOf(error), tracebackOf(error, program));
  } catch {
    return failure("raised", "Error", "(its message could not be made)");
  }
}

// `fetch failed` says nothing; its cause does.
function messageOf(error) {
  const parts = [String(error.message ?? error)];
  for (let cause = error.cause; cause && parts.length <= CAUSES; cause = cause.cause) {
    parts.push(String(cause.message || cause.code || cause));
  }
  return parts.join(": ");
}

/** The frames in the tool's own source, innermost first, as Node writes them. */
function tracebackOf(error, program) {
  if (!program) return "";
  const lines = String(error.stack ?? "").split("\n");
  const own = lines.map((line) => program.inSource(line)).filter(Boolean);
  return own.slice(0, FRAMES).map((line) => `${line}\n`).join("").slice(0, MESSAGE_CHARS);
}
