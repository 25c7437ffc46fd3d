// While the server is away: how to know that, and when to try again.
import { Failure } from "./client.ts";

/** longestWait bounds the wait before what failed is read again while the server is away, in ms. */
const longestWait = 15_000;

/** isAway reports whether a request failed because the server, or a proxy's, could not be reached: it may be back soon. */
export function isAway(err: unknown): boolean {
  return err instanceof Failure && [0, 502, 503, 504].includes(err.status) && err.problem.code !== "busy";
}

/** waitToRetry waits before another attempt: longer after each failure, at most longestWait ms. It ends early when the
 * network is back or the signal is aborted. */
export function waitToRetry(failed: number, signal: AbortSignal): Promise<void> {
  const ms = Math.min(longestWait, 250 * 2 ** failed) * (0.5 + Math.random() / 2);
  return new Promise((done) => {
    const end = () => {
      clearTimeout(timer);
      removeEventListener("online", end);
      signal.removeEventListener("abort", end);
      done();
    };
    const timer = setTimeout(end, ms);
    addEventListener("online", end);
    signal.addEventListener("abort", end);
  });
}
