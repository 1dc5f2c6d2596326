import {
  Activity, Bot, BookOpen, ChartColumn, Cpu, FolderOpen, KeyRound, LayoutTemplate, LogOut, type LucideIcon, Monitor, Moon, Plug, Sun, Wrench,
} from "lucide-react";
import { Link } from "wouter";
import { BASE_URL } from "../api/client";
import type { Right } from "../api/client";
import { currentKey, keepKey } from "../api/key";
import { href } from "../router";
import { IconButton } from "../ui/icon-button";
import { useCaller } from "./access-gate";
import { lock } from "./lock";
import { useTheme } from "./theme";

const THEMES = { system: Monitor, light: Sun, dark: Moon };

/** Where one may go, for whoever has the right. */
const PLACES: { to: string; label: string; icon: LucideIcon; needs: Right }[] = [
  { to: "/agents", label: "Agents", icon: Bot, needs: "read_agent" },
  { to: "/runs", label: "Runs", icon: Activity, needs: "read_messages" },
  { to: "/tools", label: "Tools", icon: Wrench, needs: "read" },
  { to: "/mcp", label: "MCP", icon: Plug, needs: "read" },
  { to: "/folders", label: "Folders", icon: FolderOpen, needs: "read" },
  { to: "/templates", label: "Templates", icon: LayoutTemplate, needs: "read" },
  { to: "/models", label: "Models", icon: Cpu, needs: "read" },
  { to: "/usage", label: "Usage", icon: ChartColumn, needs: "read" },
  { to: "/keys", label: "Keys", icon: KeyRound, needs: "own" },
];

/** The bar at the left: where to go. */
export function Rail({ at }: { at: string }) {
  const [theme, nextTheme] = useTheme();
  const caller = useCaller();
  const Picture = THEMES[theme];
  return (
    <nav className="rail" aria-label="Main">
      <div className="rail-places">
        {PLACES.filter(({ needs }) => caller.rights.includes(needs)).map(({ to, label, icon: Icon }) => (
          <Link key={to} href={to} className="rail-item" aria-current={at.split("/")[1] === to.slice(1) ? "page" : undefined} title={label}>
            <Icon aria-hidden /> <span>{label}</span>
          </Link>
        ))}
      <a className="rail-item" href={`${BASE_URL}/docs`} target="_blank" rel="noopener noreferrer" title="Documents of the API">
        <BookOpen aria-hidden /> <span>API</span>
      </a>
      </div>
      <div className="rail-end">
        <span className="rail-role muted small" title={`Your role: ${caller.role}`}>{caller.role}</span>
        <IconButton label={`Theme: ${theme}`} icon={Picture} onClick={nextTheme} />
        {currentKey() !== null && (
          <IconButton
            label="Sign out"
            icon={LogOut}
            onClick={() => {
              keepKey(null);
              location.assign(href("/agents"));
              lock();
            }}
          />
        )}
      </div>
    </nav>
  );
}
