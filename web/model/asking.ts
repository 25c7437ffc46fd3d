// What a person is asked about an entry, in the conversation: one question at a time.

export interface Question {
  what: "label" | "edit" | "continue";
  entry: string;
}

const draftsKey = "coppice-drafts";
const maxDrafts = 20;

/** drafts are the edits of messages that were begun and not sent, by entry, while the tab is open. At most maxDrafts. */
export const drafts = new Map<string, string>(stored());

/** keepDraft keeps the draft of an entry; null = there is none any more. */
export function keepDraft(entry: string, text: string | null): void {
  drafts.delete(entry);
  if (text !== null) drafts.set(entry, text);
  if (drafts.size > maxDrafts) drafts.delete(drafts.keys().next().value!);
  try {
    sessionStorage.setItem(draftsKey, JSON.stringify([...drafts]));
  } catch {
    // it is full: they stay until the page is loaded again
  }
}

function stored(): [string, string][] {
  try {
    return JSON.parse(sessionStorage.getItem(draftsKey) ?? "[]") as [string, string][];
  } catch {
    return [];
  }
}
