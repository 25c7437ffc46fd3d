// What a person is asked about an entry, in the conversation: one question at a time.
import { signal } from "@preact/signals";

export interface Question {
  what: "label" | "edit" | "continue";
  entry: string;
}

/** asking is the question that is open; null = none. */
export const asking = signal<Question | null>(null);
