import { BEGIN, END, graphOf, type Rule, sentenceOf } from "./rules";

const WIDTH = 336;
const ROW = 64;
const HEIGHT = 26;
const MOST = 160;

/** The ways that rules leave, from the beginning of a turn to its end. */
export function RuleGraph({ rules }: { rules: readonly Rule[] }) {
  const { nodes, edges, layers } = graphOf(rules);
  if (!layers) return null;
  const inRow = Math.max(...nodes.map(({ layer }) => nodes.filter((other) => other.layer === layer).length));
  const box = Math.min(WIDTH / inRow - 8, MOST);
  const letters = Math.floor(box / 6.8);
  const spots = new Map(nodes.map((node) => [node.name, { x: node.across * WIDTH, y: node.layer * ROW + HEIGHT / 2 + 1 }]));
  return (
    <svg className="rule-graph" viewBox={`0 0 ${WIDTH} ${layers * ROW - ROW + HEIGHT + 2}`} role="img" aria-label={`Rules as a graph. ${rules.map(sentenceOf).join(" ")}`}>
      <defs>
        <marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto-start-reverse"><path d="M0 0 8 4 0 8z" /></marker>
      </defs>
      {edges.map(({ from, to, isOptional }) => {
        const a = spots.get(from);
        const b = spots.get(to);
        if (!a || !b) return null;
        const down = Math.sign(b.y - a.y) || 1;
        return (
          <line key={`${from}>${to}`} className={isOptional ? "optional" : ""} x1={a.x} y1={a.y + (down * HEIGHT) / 2} x2={b.x} y2={b.y - (down * HEIGHT) / 2} markerEnd="url(#arrow)" />
        );
      })}
      {nodes.map(({ name }) => {
        const spot = spots.get(name);
        if (!spot) return null;
        return (
          <g key={name} className={name === BEGIN || name === END ? "edge-of-turn" : ""}>
            <title>{name}</title>
            <rect x={spot.x - box / 2} y={spot.y - HEIGHT / 2} width={box} height={HEIGHT} rx={6} />
            <text x={spot.x} y={spot.y + 4} textAnchor="middle">{name.length > letters ? `${name.slice(0, letters - 1)}…` : name}</text>
          </g>
        );
      })}
    </svg>
  );
}
