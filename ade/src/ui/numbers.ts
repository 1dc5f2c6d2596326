const FORMAT = new Intl.NumberFormat("en");
const SHORT = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

export function whole(number: number | null | undefined): string {
  return number === null || number === undefined ? "?" : FORMAT.format(number);
}

/** Returns a number in few characters, such as 1.2K. */
export function short(number: number): string {
  return SHORT.format(number);
}

/** Returns dollars with as many places as they need. */
export function dollars(amount: number): string {
  if (amount === 0) return "$0";
  return amount < 0.01 ? `$${amount.toPrecision(2)}` : `$${amount.toFixed(2)}`;
}

/** Returns how long something took, such as 340 ms, 2.1 s or 3 min 20 s. */
export function duration(nanoseconds: number | null | undefined): string {
  if (nanoseconds === null || nanoseconds === undefined) return "";
  const milliseconds = nanoseconds / 1e6;
  if (milliseconds < 1_000) return `${Math.round(milliseconds)} ms`;
  const seconds = milliseconds / 1_000;
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
}

export function percent(part: number, all: number): string {
  const share = (part / Math.max(all, 1)) * 100;
  return share > 0 && share < 1 ? "<1 %" : `${Math.round(share)} %`;
}

/** Returns a size of a file, such as 12 kB. */
export function size(bytes: number): string {
  if (bytes < 1_000) return `${bytes} B`;
  if (bytes < 1_000_000) return `${(bytes / 1_000).toFixed(1)} kB`;
  return `${(bytes / 1_000_000).toFixed(1)} MB`;
}
