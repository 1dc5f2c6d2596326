import { expect, it } from "vitest";
import type { Backend, Cursor } from "./backend";
import { Pages } from "./pages";
import type { WireMessage } from "./wire";

const idsOf = (pages: Pages): (string | undefined)[] => (pages.passage ?? pages.newest).fold([]).parts.map(({ messageId }) => messageId);
const stored: WireMessage[] = Array.from({ length: 200 }, (_, n) => ({ message_type: "user_message", id: `message-${n}`, otid: `${n}` }));
const at = (id: string | undefined): number => stored.findIndex((message) => message.id === id);

/** Pages as the API has them: the newest before a message, the oldest after one. */
async function page({ before, after, order }: Cursor = {}): Promise<WireMessage[]> {
  const found = stored.slice(after ? at(after) + 1 : 0, before ? at(before) : stored.length);
  return order ? found.slice(0, 50) : found.slice(-50);
}

it.each([
  ["in the middle", 100, 50, 150, true, true],
  ["the first", 0, 0, 50, false, true],
  ["the last", 199, 149, 200, true, false],
])("loads what was said around a message: %s", async (_, wanted, first, end, hasOlder, hasNewer) => {
  const passage = await new Pages({ page } as Backend).around(`message-${wanted}`);
  expect(passage).toMatchObject({ oldest: `message-${first}`, newest: `message-${end - 1}`, hasOlder, hasNewer });
});

it("goes on from a passage until it meets the newest", async () => {
  const pages = new Pages({ page } as Backend);
  await pages.refresh();
  pages.passage = await pages.around("message-10");
  expect(idsOf(pages)).toEqual(stored.slice(0, 60).map(({ id }) => id));
  expect(await pages.loadOlder()).toBe(false);
  while (pages.passage) expect(await pages.loadNewer()).toBe(true);
  expect(idsOf(pages)).toEqual(stored.map(({ id }) => id));
  expect([await pages.loadNewer(), await pages.loadOlder()]).toEqual([false, false]);
});
