// The states of commits as texts, those around the cursor kept. Pure.

/** Bounds of what is kept, the ones used last: states, and their characters; the last one may be longer. */
const maxStates = 64;
const maxChars = 32 << 20;

/** ahead is the number of commits on each side of the cursor whose states are read before they are wanted. */
const ahead = 6;

/** tooLong is the length of a state, in characters, from which on its neighbours are not read ahead. */
const tooLong = 512 << 10;

/** States reads the states of one session. A state never changes. */
export class States {
  private readonly kept = new Map<number, string>(); // the one used last is last
  private chars = 0;
  private prefetching: AbortController | null = null;

  constructor(private readonly read: (seq: number, signal: AbortSignal) => Promise<string>) {}

  /** get returns the state of a commit; undefined = it is not there. Before the first commit there was none. */
  get(seq: number): string | undefined {
    if (seq < 0) return "null";
    const text = this.kept.get(seq);
    if (text !== undefined) {
      this.kept.delete(seq);
      this.kept.set(seq, text);
    }
    return text;
  }

  /** load returns the state of a commit, which it reads unless it is there. */
  async load(seq: number, signal: AbortSignal): Promise<string> {
    this.prefetching?.abort();
    const had = this.get(seq);
    if (had !== undefined) return had;
    const text = await this.read(seq, signal);
    this.keep(seq, text);
    return text;
  }

  /** prefetch reads the states around a commit, the nearest first, one at a time, until load is called. */
  async prefetch(seq: number, newest: number): Promise<void> {
    this.prefetching?.abort();
    const abort = (this.prefetching = new AbortController());
    if ((this.kept.get(seq)?.length ?? 0) > tooLong) return;
    for (let d = 1; d <= ahead; d++) {
      for (const next of [seq - d, seq + d]) {
        if (next < 0 || next > newest || this.kept.has(next)) continue;
        try {
          const text = await this.read(next, abort.signal);
          if (abort.signal.aborted) return;
          this.keep(next, text);
        } catch {
          return;
        }
      }
    }
  }

  /** end aborts what is read ahead. */
  end(): void {
    this.prefetching?.abort();
  }

  private keep(seq: number, text: string): void {
    this.chars += text.length - (this.kept.get(seq)?.length ?? 0);
    this.kept.delete(seq);
    this.kept.set(seq, text);
    for (const [old, was] of this.kept) {
      if (this.kept.size <= maxStates && this.chars <= maxChars || old === seq) break;
      this.kept.delete(old);
      this.chars -= was.length;
    }
  }
}
