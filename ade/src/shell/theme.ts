import { useState } from "react";

export type Theme = "system" | "light" | "dark";
const NAME = "loci.theme";
const ORDER: Theme[] = ["system", "light", "dark"];

function stored(): Theme {
  try {
    const value = localStorage.getItem(NAME);
    return ORDER.find((theme) => theme === value) ?? "system";
  } catch {
    return "system";
  }
}

function apply(theme: Theme): void {
  document.documentElement.dataset["theme"] = theme;
}

apply(stored());

/** Returns the theme, and a function that goes on to the next. */
export function useTheme(): [Theme, () => void] {
  const [theme, setTheme] = useState(stored);
  const next = (): void => {
    const chosen = ORDER[(ORDER.indexOf(theme) + 1) % ORDER.length] ?? "system";
    try {
      localStorage.setItem(NAME, chosen);
    } catch {
      // It lasts as long as the page.
    }
    apply(chosen);
    setTheme(chosen);
  };
  return [theme, next];
}
