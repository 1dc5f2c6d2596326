import { BookOpen, Ellipsis, LogOut, Monitor, Moon, Sun } from "lucide-react";
import { Link } from "wouter";
import { BASE_URL } from "../api/client";
import { currentKey, keepKey } from "../api/key";
import { href, navigate } from "../router";
import { IconButton } from "../ui/icon-button";
import { Menu } from "../ui/menu";
import { useCaller } from "./access-gate";
import { lock } from "./lock";
import { PANE } from "./panes";
import { PLACES } from "./places";
import { useTheme } from "./theme";

const THEMES = { system: Monitor, light: Sun, dark: Moon };
const DOCUMENTS = `${BASE_URL}/docs`;
/** So many places fit into a narrow screen. */
const FIRST = 4;

/** The bar at the left, or below on narrow screens: where to go. */
export function Rail({ at }: { at: string }) {
  const [theme, nextTheme] = useTheme();
  const caller = useCaller();
  const places = PLACES.filter(({ needs }) => caller.rights.includes(needs));
  const isAt = (to: string): boolean => at.split("/")[1] === to.slice(1);
  // Where one is stands in the bar, too.
  const hidden = places.slice(FIRST).filter(({ to }) => !isAt(to));
  const isSignedIn = currentKey() !== null;
  return (
    <nav className="rail" aria-label="Main" {...PANE}>
      <div className="rail-places">
        {places.map((place) => (
          <Link
            key={place.to}
            href={place.to}
            className={`rail-item ${hidden.includes(place) ? "wide-only" : ""}`}
            aria-current={isAt(place.to) ? "page" : undefined}
            title={place.label}
          >
            <place.icon aria-hidden /> <span>{place.label}</span>
          </Link>
        ))}
        <a className="rail-item wide-only" href={DOCUMENTS} target="_blank" rel="noopener noreferrer" title="Documents of the API">
          <BookOpen aria-hidden /> <span>API</span>
        </a>
        <div className="rail-more narrow-only">
          <Menu
            label="More"
            icon={Ellipsis}
            items={[
              ...hidden.map(({ to, label }) => ({ label, run: () => navigate(to) })),
              { label: "Documents of the API", run: () => window.open(DOCUMENTS, "_blank", "noopener,noreferrer") },
              { label: `Theme: ${theme}`, run: nextTheme },
              ...(isSignedIn ? [{ label: "Sign out", run: signOut }] : []),
            ]}
          />
        </div>
      </div>
      <div className="rail-end wide-only">
        <span className="rail-role muted small" title={`Your role: ${caller.role}`}>{caller.role}</span>
        <IconButton label={`Theme: ${theme}`} icon={THEMES[theme]} onClick={nextTheme} />
        {isSignedIn && <IconButton label="Sign out" icon={LogOut} onClick={signOut} />}
      </div>
    </nav>
  );
}

function signOut(): void {
  keepKey(null);
  location.assign(href("/agents"));
  lock();
}
