import { Ellipsis } from "lucide-react";
import { navigate } from "../router";
import { pointerTo } from "../time/places";
import { Menu, type MenuItem } from "../ui/menu";
import type { Part } from "./parts";
import { chatPath, type Place } from "./place";

/** What can be done with something that was said. */
export function PartMenu({ part, place }: { part: Part; place: Place }) {
  const items = itemsOf(part, place);
  if (!items.length) return null;
  return <div className="part-menu"><Menu label={part.kind === "user" ? "More about your message" : "More about this answer"} icon={Ellipsis} items={items} /></div>;
}

function itemsOf(part: Part, place: Place): MenuItem[] {
  if (part.kind !== "user" && part.kind !== "assistant") return [];
  const pointer = pointerTo(part);
  const items: MenuItem[] = [];
  if (pointer) {
    items.push({
      label: part.kind === "user" ? "Go back to before it ..." : "Go back or fork from here ...",
      run: () => navigate(`${chatPath(place)}/time?${new URLSearchParams({ ...pointer }).toString()}`),
    });
  }
  if (part.runId) items.push({ label: "Show its run", run: () => navigate(`/runs/${part.runId}`) });
  // Pages that plain http serves to other machines have none.
  if (part.text && typeof navigator.clipboard !== "undefined") {
    items.push({ label: "Copy the text", run: () => navigator.clipboard.writeText(part.text) });
  }
  return items;
}
