import { expect, test } from "vitest";
import { eventsOf, type ServerEvent } from "./events";

async function read(...chunks: string[]): Promise<ServerEvent[]> {
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(new TextEncoder().encode(chunk));
      controller.close();
    },
  });
  const events: ServerEvent[] = [];
  for await (const event of eventsOf(new Response(body))) events.push(event);
  return events;
}

test("events keep their names, however they are cut", async () => {
  const events = await read(": ping\n\nid: 1\nevent: std", 'out\ndata: {"text":"a"}\n', "\nevent: receipt\ndata: 1\ndata: 2\n\n");
  expect(events).toEqual([{ event: "stdout", data: '{"text":"a"}' }, { event: "receipt", data: "1\n2" }]);
});

test("an event without an end is none", async () => {
  expect(await read("data: half")).toEqual([]);
});
