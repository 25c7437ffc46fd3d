// What is read for a key: at most one read is under way, and what was read for another key is never shown.
import { computed, effect, signal, untracked, type ReadonlySignal } from "@preact/signals";
import { isAway, waitToRetry } from "../api/away.ts";

/** A Resource is what was read for the newest key. */
export interface Resource<T> {
  value: ReadonlySignal<T | null>; // null = nothing was read yet
  busy: ReadonlySignal<boolean>;
  error: ReadonlySignal<string>; // why the newest read failed; "" = it did not
  retry: () => void;
  /** change replaces a value that was read, as when a commit arrives. */
  change: (f: (value: T) => T) => void;
  /** end aborts what is under way, and no longer follows the key. */
  end: () => void;
}

/** alive grows when the server answers again after it was away. Resources whose read failed are read again then. */
export const alive = signal(0);

/** messageOf returns what a person can read of what went wrong. */
export function messageOf(err: unknown): string {
  return err instanceof Error ? err.message : String(err);
}

/**
 * resource reads what a key names, and again when the key changes, or the server is back after it was away. A null key reads
 * nothing. The key follows the signals that it reads, and is compared by ===. keep: the value of the key before is
 * there until the newest one is read.
 */
export function resource<K, T>(
  key: () => K | null, load: (key: K, signal: AbortSignal) => Promise<T>, keep = false,
): Resource<T> {
  const value = signal<T | null>(null);
  const busy = signal(false);
  const error = signal("");
  const turn = signal(0);
  const wanted = computed(key); // its signals may change while the key stays
  let last: K | null = null;
  let failed = 0; // reads in a row that found the server away
  const retry = () => (turn.value = turn.peek() + 1);
  const read = async (of: K, signal: AbortSignal) => {
    try {
      const v = await load(of, signal);
      if (signal.aborted) return;
      failed = 0;
      value.value = v;
      busy.value = false;
    } catch (err) {
      if (signal.aborted) return;
      error.value = messageOf(err);
      busy.value = false;
      if (!isAway(err)) return;
      await waitToRetry(failed++, signal);
      if (!signal.aborted) retry();
    }
  };
  const endRead = effect(() => {
    const of = wanted.value;
    void turn.value;
    return untracked(() => {
      if (of !== last && (!keep || of === null)) value.value = null;
      last = of;
      error.value = "";
      busy.value = of !== null;
      if (of === null) return;
      const abort = new AbortController();
      void read(of, abort.signal);
      return () => abort.abort();
    });
  });
  const endRetry = effect(() => {
    void alive.value;
    if (error.peek() !== "") retry();
  });
  return {
    value, busy, error, retry, change: (f) => {
      if (value.peek() !== null) value.value = f(value.peek()!);
    },
    end() {
      endRead();
      endRetry();
    },
  };
}
