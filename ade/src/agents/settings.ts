/** What a person may change of an agent here. */
export interface Settings {
  name: string;
  description: string;
  model: string;
  system: string;
  tags: string[];
  timezone: string;
}

const WORDS: Record<keyof Settings, string> = {
  name: "the name",
  description: "the description",
  model: "the model",
  system: "the instructions",
  tags: "the tags",
  timezone: "the time zone",
};

export function settingsOf(agent: { [Name in keyof Settings]?: Settings[Name] | null }): Settings {
  return {
    name: agent.name ?? "",
    description: agent.description ?? "",
    model: agent.model ?? "",
    system: agent.system ?? "",
    tags: [...(agent.tags ?? [])].sort(),
    timezone: agent.timezone ?? "",
  };
}

/** Returns what was changed since `base`, and the names of what somebody else changed of the same. */
export function changesOf(base: Settings, mine: Settings, now: Settings): { changes: Partial<Settings>; clashes: string[] } {
  const names = Object.keys(WORDS) as (keyof Settings)[];
  const differs = (a: Settings, b: Settings, name: keyof Settings): boolean => JSON.stringify(a[name]) !== JSON.stringify(b[name]);
  const sorted = { ...mine, tags: [...mine.tags].sort() };
  const changed = names.filter((name) => differs(base, sorted, name));
  return {
    changes: Object.fromEntries(changed.map((name) => [name, mine[name]])) as Partial<Settings>,
    clashes: changed.filter((name) => differs(base, now, name) && differs(sorted, now, name)).map((name) => WORDS[name]),
  };
}
