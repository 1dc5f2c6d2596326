const FORMAT = new Intl.RelativeTimeFormat("en", { numeric: "auto", style: "narrow" });
const UNITS: [Intl.RelativeTimeFormatUnit, number][] = [
  ["year", 31_536_000],
  ["month", 2_592_000],
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
];

/** Returns how long ago a moment was, such as "2 min. ago"; empty for none. */
export function ago(moment: string | null | undefined): string {
  if (!moment) return "";
  const seconds = (Date.parse(moment) - Date.now()) / 1000;
  const unit = UNITS.find(([, length]) => -seconds >= length);
  return unit ? FORMAT.format(Math.round(seconds / unit[1]), unit[0]) : "now";
}

/** Returns a moment as a clock and a calendar tell it here. */
export function clock(time: string): string {
  return new Date(time).toLocaleString("en", { dateStyle: "medium", timeStyle: "short" });
}
