const PAGE = 100;
/** More than a person looks at; the rest is for programs. */
const MOST = 1_000;

interface PageQuery {
  limit: number;
  order: "asc";
  after?: string;
}

/** Returns what a list has, oldest first: all pages of it, as far as 1,000. */
export async function allPages<T extends { id?: string }>(page: (query: PageQuery) => Promise<T[]>): Promise<T[]> {
  const all: T[] = [];
  for (;;) {
    const after = all.at(-1)?.id;
    const next = await page({ limit: PAGE, order: "asc", ...(after && { after }) });
    all.push(...next);
    if (next.length < PAGE || all.length >= MOST) return all;
  }
}
