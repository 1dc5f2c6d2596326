import { afterEach, expect, test } from "vitest";
import { allUploads, type Answer, cutOff, forget, onStored, type Send, upload, uploadAgain } from "./uploads";

const FILE = new File(["0123456789"], "digits.txt");
const STORED: Answer = { status: 200, body: "{}" };

afterEach(() => allUploads().forEach(forget));

test("what has gone is told, and a file that is stored leaves the list", async () => {
  const seen: [number, string][] = [];
  const stored: string[] = [];
  const stop = onStored((folderId) => stored.push(folderId));
  const send: Send = async (_, duplicates, tell) => {
    expect(duplicates).toBe("suffix");
    for (const sent of [4, 10]) {
      tell(sent);
      seen.push(...allUploads().map((each): [number, string] => [each.sent, each.state]));
    }
    return STORED;
  };
  await Promise.all(upload("source-1", [FILE], send));
  expect(seen).toEqual([[4, "sending"], [10, "storing"]]);
  expect(allUploads()).toEqual([]);
  expect(stored).toEqual(["source-1"]);
  stop();
});

test("an upload that is cut off says how far it came, and is sent again without a second copy", async () => {
  await Promise.all(
    upload("source-1", [FILE], async (_, __, tell) => {
      tell(4);
      throw new TypeError("gone");
    }),
  );
  const [failed] = allUploads();
  expect(failed).toMatchObject({ state: "failed", sent: 4, problem: "Cut off at 40 %: nothing of it was stored." });
  const handled: string[] = [];
  await uploadAgain(failed!, async (_, duplicates) => {
    handled.push(duplicates);
    return STORED;
  });
  expect(handled).toEqual(["skip"]);
  expect(allUploads()).toEqual([]);
});

test("a refusal is the server's sentence", async () => {
  await Promise.all(upload("source-1", [FILE], async () => ({ status: 415, body: '{"detail": "a picture has no text"}' })));
  expect(allUploads()[0]).toMatchObject({ state: "failed", problem: "a picture has no text" });
});

test("nobody knows what became of a file that went whole", () => {
  expect(cutOff(10, 10)).toContain("may have been stored");
});
