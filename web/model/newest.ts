// Reading what a moving cursor is at: one request is under way, for the newest place. Pure.

/**
 * A Newest does one job after another, each for the newest place that was asked for. A place that was asked for while a
 * job is under way aborts it, once that has gone on for `patience` of them: without this, a cursor that moves faster
 * than the server answers would show nothing until it rests.
 */
export class Newest<P, V> {
  private running: AbortController | null = null;
  private waiting: { place: P } | null = null;
  private passed = 0;

  /** patience is the number of newer places that a job outlives. 0 = it is aborted at once. */
  constructor(
    private readonly job: (place: P, signal: AbortSignal) => Promise<V>,
    private readonly done: (place: P, value: V) => void,
    private readonly failed: (place: P, err: unknown) => void,
    private readonly patience = 0,
  ) {}

  /** ask reads a place, after whatever is under way. */
  ask(place: P): void {
    this.waiting = { place };
    if (!this.running) void this.run();
    else if (++this.passed > this.patience) this.running.abort();
  }

  /** end aborts what is under way. */
  end(): void {
    this.waiting = null;
    this.running?.abort();
  }

  private async run(): Promise<void> {
    while (this.waiting) {
      const { place } = this.waiting;
      this.waiting = null;
      this.passed = 0;
      const abort = (this.running = new AbortController());
      try {
        const value = await this.job(place, abort.signal);
        if (!abort.signal.aborted) this.done(place, value);
      } catch (err) {
        if (!abort.signal.aborted) this.failed(place, err);
      }
    }
    this.running = null;
  }
}
