// The three hints of `coppice serve --demo`: they are shown where its address asks for them, until they are dismissed.
import { signal } from "@preact/signals";

const key = "coppice-hints";

/** hinted reports whether the hints are shown. */
export const hinted = signal(new URLSearchParams(location.search).has("hints") && !dismissed());

function dismissed(): boolean {
  try {
    return localStorage.getItem(key) !== null;
  } catch {
    return false; // storage is forbidden: they are shown with each demo
  }
}

/** dismissHints hides the hints, in this browser for good. */
export function dismissHints(): void {
  hinted.value = false;
  try {
    localStorage.setItem(key, "dismissed");
  } catch {
    // until the next visit
  }
}
