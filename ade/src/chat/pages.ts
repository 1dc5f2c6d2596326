import { type Backend, PAGE } from "./backend";
import { History } from "./history";

/** What is loaded of a conversation: the newest messages and, where somebody looks at older ones, a passage of these. */
export class Pages {
  newest = new History(PAGE);
  /** What is shown in the place of the newest; null: these are. */
  passage: History | null = null;
  private isLoading = false;

  constructor(private readonly backend: Backend) {}

  async refresh(): Promise<void> {
    this.newest.merge(await this.backend.page());
  }

  /** Loads what was said before that which is shown. Returns whether it did. */
  loadOlder(): Promise<boolean> {
    const shown = this.passage ?? this.newest;
    return this.load(shown.hasOlder && shown.oldest, async (before) => shown.prepend(await this.backend.page({ before })));
  }

  /** Loads what was said after a passage, until it meets the newest. Returns whether it did. */
  loadNewer(): Promise<boolean> {
    const { passage } = this;
    return this.load(passage?.hasNewer && passage.newest, async (after) => {
      passage?.append(await this.backend.page({ after, order: "asc" }));
      if (passage && passage === this.passage && this.newest.join(passage)) this.passage = null;
    });
  }

  /** Loads a message and what was said before and after it. */
  async around(messageId: string): Promise<History> {
    const passage = new History(PAGE);
    passage.merge(await this.backend.page({ before: messageId }));
    const last = passage.newest;
    // Without any before it, it is the first.
    passage.append(await this.backend.page({ order: "asc", ...(last && { after: last }) }));
    return passage;
  }

  private async load(cursor: string | false | undefined, page: (cursor: string) => Promise<void>): Promise<boolean> {
    if (!cursor || this.isLoading) return false;
    this.isLoading = true;
    try {
      await page(cursor);
      return true;
    } catch {
      // Scrolling asks again.
      return false;
    } finally {
      this.isLoading = false;
    }
  }
}
