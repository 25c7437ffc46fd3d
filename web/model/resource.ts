// What is read for a key: at most one read is under way, and what was read for another key is never shown.
import { effect, signal, untracked, type ReadonlySignal } from "@preact/signals";

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

/**
 * resource reads what a key names, and again when the key changes. A null key reads nothing. key is called in an effect, so
 * that it follows the signals that it reads. keep: the value of the key before is there until the newest one is read.
 */
export function resource<K, T>(
  key: () => K | null, load: (key: K, signal: AbortSignal) => Promise<T>, keep = false,
): Resource<T> {
  const value = signal<T | null>(null);
  const busy = signal(false);
  const error = signal("");
  const turn = signal(0);
  let last: K | null = null;
  const retry = () => (turn.value = turn.peek() + 1);
  const endRead = effect(() => {
    const of = key();
    void turn.value;
    return untracked(() => {
      if (of !== last && (!keep || of === null)) value.value = null;
      last = of;
      error.value = "";
      busy.value = of !== null;
      if (of === null) return;
      const abort = new AbortController();
      load(of, abort.signal).then((v) => {
        if (abort.signal.aborted) return;
        value.value = v;
        busy.value = false;
      }, (err: unknown) => {
        if (abort.signal.aborted) return;
        error.value = err instanceof Error ? err.message : String(err);
        busy.value = false;
      });
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
