import { Bot, BookOpen, LogOut, Monitor, Moon, Sun } from "lucide-react";
import { Link } from "wouter";
import { BASE_URL } from "../api/client";
import { currentKey, keepKey } from "../api/key";
import { href } from "../router";
import { IconButton } from "../ui/icon-button";
import { useCaller } from "./access-gate";
import { lock } from "./lock";
import { useTheme } from "./theme";

const THEMES = { system: Monitor, light: Sun, dark: Moon };

/** The bar at the left: where to go. */
export function Rail({ at }: { at: string }) {
  const [theme, nextTheme] = useTheme();
  const caller = useCaller();
  const Picture = THEMES[theme];
  const isHere = at === "/" || at.startsWith("/agents");
  return (
    <nav className="rail" aria-label="Main">
      <Link href="/agents" className="rail-item" aria-current={isHere ? "page" : undefined} title="Agents">
        <Bot aria-hidden /> <span>Agents</span>
      </Link>
      <a className="rail-item" href={`${BASE_URL}/docs`} target="_blank" rel="noopener noreferrer" title="Documents of the API">
        <BookOpen aria-hidden /> <span>API</span>
      </a>
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
