// The versions of an entry: which one is read, and which line was read last below each.
import type { Entry } from "../api/client.ts";
import type { Mark } from "../api/pages.ts";
import { leafBelow, some } from "./lines.ts";
import { view } from "./nav.ts";
import type { OpenSession } from "./session.ts";

/** maxLines bounds the lines that are remembered; the oldest are forgotten. */
const maxLines = 500;

/** mostPeeked bounds the versions of which the first words are shown. */
const mostPeeked = 8;

/** Versions are those of the entries of one session. */
export class Versions {
  private readonly lines = new Map<string, string>(); // the ends of the lines that were read last, by version

  constructor(private readonly s: OpenSession) {}

  /** choose shows another version of an entry, a step away, where the entry is now: offset below the upper edge. */
  async choose(mark: Mark, step: number, offset: number): Promise<void> {
    const to = mark.versions[mark.versions.indexOf(mark.id) + step];
    if (to !== undefined) await this.chooseVersion(mark, to, offset);
  }

  /** chooseVersion shows the line that was read last below a version of an entry, else the newest. The head stays. */
  async chooseVersion(mark: Mark, to: string, offset: number): Promise<void> {
    if (to === mark.id) return;
    const end = view.peek().line ?? this.s.head.peek()?.entry;
    if (end) this.remember(mark.id, end);
    const leaf = await leafBelow(this.s.id, this.lines.get(to) ?? to);
    if (!this.s.ended.aborted) await this.s.conversation.turnTo(leaf, to, { key: to, offset });
  }

  /** peek reads the versions next to an entry, itself included. */
  async peek(mark: Mark, signal: AbortSignal): Promise<readonly Entry[]> {
    const at = mark.versions.indexOf(mark.id);
    const from = Math.max(0, Math.min(at - mostPeeked / 2, mark.versions.length - mostPeeked));
    return (await some(this.s.id, mark.versions.slice(from, from + mostPeeked), signal)).entries;
  }

  private remember(version: string, end: string): void {
    this.lines.delete(version);
    this.lines.set(version, end);
    if (this.lines.size > maxLines) this.lines.delete(this.lines.keys().next().value!);
  }
}
