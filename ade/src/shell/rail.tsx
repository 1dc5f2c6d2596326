import { BookOpen, LogOut, Monitor, Moon, Sun } from "lucide-react";
import { useEffect, useRef } from "react";
import { Link } from "wouter";
import { BASE_URL } from "../api/client";
import { currentKey, keepKey } from "../api/key";
import { href } from "../router";
import { IconButton } from "../ui/icon-button";
import { useCaller } from "./access-gate";
import { lock } from "./lock";
import { PLACES } from "./places";
import { useTheme } from "./theme";

const THEMES = { system: Monitor, light: Sun, dark: Moon };

/** The bar at the left: where to go. */
export function Rail({ at }: { at: string }) {
  const [theme, nextTheme] = useTheme();
  const caller = useCaller();
  const Picture = THEMES[theme];
  const places = useRef<HTMLDivElement>(null);
  // On narrow screens the bar is longer than the screen.
  useEffect(() => places.current?.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" }), [at]);
  return (
    <nav className="rail" aria-label="Main">
      <div className="rail-places" ref={places}>
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
