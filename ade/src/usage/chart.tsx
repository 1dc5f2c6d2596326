import { dollars, short } from "../ui/numbers";
import { useWidth } from "../ui/use-width";
import type { Bar, Measure } from "./usage";

const HEIGHT = 200;
const LEFT = 52;
/** Of a label below, in pixels. */
const LABEL = 56;
const BELOW = 22;

export function amountWords(amount: number, measure: Measure): string {
  return measure === "cost_usd" ? dollars(amount) : short(amount);
}

/** Bars over time, each of the groups in its colour. The table beside it says the same in numbers. */
export function Chart({ bars, groups, measure, isHours }: { bars: Bar[]; groups: string[]; measure: Measure; isHours: boolean }) {
  const most = Math.max(...bars.map((bar) => bar.amount), 0);
  const [box, width] = useWidth<HTMLDivElement>();
  const step = Math.max(width - LEFT, 0) / bars.length;
  const scale = (amount: number): number => (most ? (amount / most) * (HEIGHT - BELOW - 12) : 0);
  const every = Math.max(Math.ceil(LABEL / Math.max(step, 1)), 1);
  return (
    <div ref={box} className="chart">
      <svg width={width} height={HEIGHT} role="img" aria-label={`Bars over time; the most is ${amountWords(most, measure)}.`}>
        {[0, 0.5, 1].map((share) => {
          const y = HEIGHT - BELOW - scale(most * share);
          return (
            <g key={share}>
              <line className="grid" x1={LEFT} x2={width} y1={y} y2={y} />
              <text x={LEFT - 6} y={y + 4} textAnchor="end">{most || share === 0 ? amountWords(most * share, measure) : ""}</text>
            </g>
          );
        })}
        {bars.map((bar, at) => {
          let y = HEIGHT - BELOW;
          return (
            <g key={bar.time}>
              <title>{`${label(bar.time, isHours)}: ${bar.parts.map((part) => `${part.name} ${amountWords(part.amount, measure)}`).join(", ") || "nothing"}`}</title>
              <rect className="hit" x={LEFT + at * step} y={0} width={step} height={HEIGHT - BELOW} />
              {bar.parts.map((part) => {
                const height = scale(part.amount);
                y -= height;
                return <rect key={part.name} className={`group-${groups.indexOf(part.name)}`} x={LEFT + at * step + 1} y={y} width={Math.max(step - 2, 1)} height={height} />;
              })}
              {at % every === 0 && <text x={LEFT + at * step + step / 2} y={HEIGHT - 6} textAnchor="middle">{label(bar.time, isHours)}</text>}
            </g>
          );
        })}
      </svg>
    </div>
  );
}

function label(time: string, isHours: boolean): string {
  const options: Intl.DateTimeFormatOptions = isHours ? { hour: "2-digit", minute: "2-digit", hour12: false } : { month: "short", day: "numeric" };
  return new Date(time).toLocaleString("en", { ...options, timeZone: "UTC" });
}
